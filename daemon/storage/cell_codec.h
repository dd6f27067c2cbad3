// A chunk of cells as bytes: for each cell that is not empty, how far it is from the
// one before, which fields are not zero, and those as varints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/storage/cells.h"

namespace lull::storage {

std::string EncodeChunk(const CellChunk& chunk);

// Takes one cell off the front of `in`. `index`: in, the lowest that it can have;
// out, the one that it has. False for bytes that EncodeChunk did not make.
bool TakeCell(std::string_view* in, uint32_t* index, aggregate::Cell* cell);

// Calls visit(index, cell) for the cells of a chunk that are not empty.
template <typename Visitor>
bool DecodeChunk(std::string_view in, Visitor&& visit) {
  for (uint32_t index = 0; !in.empty(); ++index) {
    aggregate::Cell cell;
    if (!TakeCell(&in, &index, &cell)) return false;
    visit(index, cell);
  }
  return true;
}

}  // namespace lull::storage
