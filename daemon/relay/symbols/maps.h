// The code of a process: which file an address belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/procfs/maps.h"

namespace lull::relay {

// A snapshot of a process's executable mappings. Pure: the text of /proc/PID/maps comes
// from elsewhere, so that it can be kept for when the process is gone.
class Maps {
 public:
  static Maps Parse(std::string_view text);
  // A text from which Parse() makes the same snapshot.
  std::string ToText() const;

  // nullptr: no executable mapping holds the address.
  const Mapping* Find(uint64_t address) const {
    return FindMapping(mappings_, address);
  }
  bool empty() const { return mappings_.empty(); }
  const std::vector<Mapping>& mappings() const { return mappings_; }

 private:
  std::vector<Mapping> mappings_;  // by address
};

}  // namespace lull::relay
