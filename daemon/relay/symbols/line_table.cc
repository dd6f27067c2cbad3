#include "daemon/relay/symbols/line_table.h"

#include <cstddef>

namespace lull::relay {
namespace {

// Lines are added up modulo 2^32, so that no table can overflow a signed integer.
int32_t Checked(uint32_t line) {
  int32_t value = static_cast<int32_t>(line);
  return value > 0 ? value : kNoLine;
}

uint32_t SignExtend(unsigned char byte) {
  return static_cast<uint32_t>(static_cast<int32_t>(static_cast<signed char>(byte)));
}

int32_t FromLnotab(uint32_t line, std::string_view table, uint64_t target) {
  uint64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += static_cast<unsigned char>(table[i]);
    if (address > target) break;
    line += SignExtend(static_cast<unsigned char>(table[i + 1]));
  }
  return Checked(line);
}

int32_t FromPep626(uint32_t line, std::string_view table, uint64_t target) {
  uint64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += static_cast<unsigned char>(table[i]);
    signed char delta = static_cast<signed char>(table[i + 1]);
    bool has_line = delta != -128;
    if (has_line) line += SignExtend(static_cast<unsigned char>(table[i + 1]));
    if (target < end) return has_line ? Checked(line) : kNoLine;
  }
  return kNoLine;
}

// Entry of a location table: 1cccclll, then bytes whose top bit is clear.
// cccc: what follows; lll + 1: code units of two bytes that it covers.
constexpr unsigned kCodeNone = 15;
constexpr unsigned kCodeLong = 14;
constexpr unsigned kCodeNoColumns = 13;
constexpr unsigned kCodeOneLine0 = 10;  // 10, 11, 12: line delta 0, 1, 2

// A signed varint: six bits a byte, bit 6 says that more follow, sign in bit 0.
uint32_t SignedVarint(std::string_view bytes) {
  uint32_t value = 0;
  unsigned shift = 0;
  for (char c : bytes) {
    unsigned byte = static_cast<unsigned char>(c);
    if (shift < 32) value |= (byte & 63u) << shift;
    if ((byte & 64u) == 0) break;
    shift += 6;
  }
  return (value & 1u) != 0 ? 0u - (value >> 1) : value >> 1;
}

int32_t FromLocationTable(uint32_t line, std::string_view table, uint64_t target) {
  uint64_t end = 0;
  size_t i = 0;
  while (i < table.size()) {
    unsigned first = static_cast<unsigned char>(table[i]);
    unsigned code = (first >> 3) & 15u;
    end += ((first & 7u) + 1) * 2;
    size_t next = i + 1;
    while (next < table.size() &&
           (static_cast<unsigned char>(table[next]) & 128u) == 0) {
      ++next;
    }
    if (code == kCodeLong || code == kCodeNoColumns) {
      line += SignedVarint(table.substr(i + 1, next - i - 1));
    } else if (code >= kCodeOneLine0 && code < kCodeNoColumns) {
      line += code - kCodeOneLine0;
    }
    if (target < end) return code == kCodeNone ? kNoLine : Checked(line);
    i = next;
  }
  return kNoLine;
}

}  // namespace

int32_t LineOfInstruction(int python_minor, int32_t first_line,
                          std::optional<std::string_view> table, int32_t lasti) {
  uint32_t line = static_cast<uint32_t>(first_line);
  if (lasti < 0) return Checked(line);
  if (!table) return kNoLine;
  uint64_t target = static_cast<uint64_t>(lasti);
  if (python_minor <= 9) return FromLnotab(line, *table, target);
  if (python_minor == 10) return FromPep626(line, *table, target);
  return FromLocationTable(line, *table, target);
}

}  // namespace lull::relay
