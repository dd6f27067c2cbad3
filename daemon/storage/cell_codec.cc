#include "daemon/storage/cell_codec.h"

#include <algorithm>

#include "daemon/storage/varint.h"

namespace lull::storage {
namespace {

using aggregate::Cell;

constexpr int kFields = 9;

void Fields(const Cell& cell, uint64_t (&fields)[kFields]) {
  // The least as the distance to the most, which is nothing where one event is all.
  uint64_t values[kFields] = {cell.count,
                              cell.total_ns,
                              cell.max_ns,
                              cell.amount,
                              cell.amount2,
                              cell.frees,
                              ZigZag(cell.live),
                              ZigZag(cell.peak),
                              cell.count > 0 ? cell.max_ns - cell.min_ns : 0};
  std::copy(values, values + kFields, fields);
}

}  // namespace

std::string EncodeChunk(const CellChunk& chunk) {
  std::string out;
  uint32_t next = 0;
  for (uint32_t i = 0; i < kChunkSeries; ++i) {
    if (chunk[i].empty()) continue;
    uint64_t fields[kFields];
    Fields(chunk[i], fields);
    uint64_t mask = 0;
    for (int f = 0; f < kFields; ++f) mask |= uint64_t{fields[f] != 0} << f;
    PutVarint(&out, i - next);
    PutVarint(&out, mask);
    for (uint64_t field : fields) {
      if (field != 0) PutVarint(&out, field);
    }
    next = i + 1;
  }
  return out;
}

bool TakeCell(std::string_view* in, uint32_t* index, Cell* cell) {
  uint64_t skip = 0;
  uint64_t mask = 0;
  if (!TakeVarint(in, &skip) || skip >= kChunkSeries) return false;
  *index += static_cast<uint32_t>(skip);
  if (*index >= kChunkSeries) return false;
  if (!TakeVarint(in, &mask) || mask >> kFields != 0) return false;
  uint64_t fields[kFields] = {};
  for (int f = 0; f < kFields; ++f) {
    if ((mask >> f & 1) != 0 && !TakeVarint(in, &fields[f])) return false;
  }
  cell->count = fields[0];
  cell->total_ns = fields[1];
  cell->max_ns = fields[2];
  cell->amount = fields[3];
  cell->amount2 = fields[4];
  cell->frees = fields[5];
  cell->live = UnZigZag(fields[6]);
  cell->peak = UnZigZag(fields[7]);
  cell->min_ns = cell->count > 0 ? cell->max_ns - fields[8] : 0;
  return true;
}

}  // namespace lull::storage
