// From an instruction to its source line: CPython's three line table formats.
//
//   up to 3.9   co_lnotab: pairs (byte increment, signed line increment)
//   3.10        PEP 626: pairs (byte length, signed line delta; -128 = no line)
//   from 3.11   location table: entries of code units with varint line deltas
//
// Pure functions on bytes that a hostile process may have written: they read
// nothing outside of `table`, always end, and never overflow.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lull::relay {

inline constexpr int32_t kNoLine = 0;

// The line of the instruction at byte offset `lasti` of co_code, as
// PyCode_Addr2Line would tell it. lasti < 0 (the frame has not begun): the first
// line. kNoLine when the table has no line for it, does not reach so far, or is not
// known (nullopt). An empty co_lnotab is that of code on one line: a lambda.
int32_t LineOfInstruction(int python_minor, int32_t first_line,
                          std::optional<std::string_view> table, int32_t lasti);

}  // namespace lull::relay
