#include "daemon/storage/cell_codec.h"

#include <algorithm>

#include "daemon/storage/varint.h"

namespace lull::storage {
namespace {

using aggregate::Cell;

constexpr int kFields = 8;

void Fields(const Cell& cell, uint64_t (&fields)[kFields]) {
  uint64_t values[kFields] = {cell.count,        cell.total_ns,    cell.max_ns,
                              cell.amount,       cell.amount2,     cell.frees,
                              ZigZag(cell.live), ZigZag(cell.peak)};
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
    PutVarint(out, i - next);
    out.push_back(static_cast<char>(mask));
    for (uint64_t field : fields) {
      if (field != 0) PutVarint(out, field);
    }
    next = i + 1;
  }
  return out;
}

bool TakeCell(std::string_view& in, uint32_t& index, Cell& cell) {
  uint64_t skip = 0;
  if (!TakeVarint(in, skip) || skip >= kChunkSeries || in.empty()) return false;
  index += static_cast<uint32_t>(skip);
  if (index >= kChunkSeries) return false;
  auto mask = static_cast<uint8_t>(in.front());
  in.remove_prefix(1);
  uint64_t fields[kFields] = {};
  for (int f = 0; f < kFields; ++f) {
    if ((mask >> f & 1) != 0 && !TakeVarint(in, fields[f])) return false;
  }
  cell = Cell{fields[0], fields[1], fields[2],           fields[3],
              fields[4], fields[5], UnZigZag(fields[6]), UnZigZag(fields[7])};
  return true;
}

}  // namespace lull::storage
