// /proc/PID/maps: which file an address of a process belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lull::relay {

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the file
  uint64_t device = 0;  // 0: unknown
  uint64_t inode = 0;
  std::string path;  // as the process sees it; "[vdso]"; "" = anonymous
};

// A snapshot of a process's executable mappings. Pure: the text comes from
// elsewhere, so that it can be kept for when the process is gone.
class Maps {
 public:
  // Lines that are not understood are left out.
  static Maps Parse(std::string_view text);
  // The text that Parse() makes the same snapshot of.
  std::string ToText() const;

  // nullptr: no executable mapping holds the address.
  const Mapping* Find(uint64_t address) const;
  bool empty() const { return mappings_.empty(); }
  const std::vector<Mapping>& mappings() const { return mappings_; }

 private:
  std::vector<Mapping> mappings_;  // by address
};

}  // namespace lull::relay
