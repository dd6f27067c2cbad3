// /proc/PID/maps: what is mapped where in a process. Pure: the text comes from
// elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// One line.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the file
  uint64_t device = 0;  // as makedev() has it; 0: unknown
  uint64_t inode = 0;   // 0: no file
  bool readable = false;
  bool writable = false;
  bool executable = false;
  // As the process sees it; "[stack]"; "" = anonymous. Of a file that was removed it
  // ends with kDeleted.
  std::string path;
};
inline constexpr absl::string_view kDeleted = " (deleted)";

// By address. Lines that are not understood are left out.
std::vector<Mapping> ParseMaps(absl::string_view text);

// nullptr: nothing of `maps`, which are sorted, is mapped there.
const Mapping* FindMapping(const std::vector<Mapping>& maps, uint64_t address);

}  // namespace lull
