#include "daemon/relay/samples/callees.h"

#include <algorithm>

namespace lull::relay {

void Callees::Add(uint64_t frame) {
  auto known = std::find_if(seen_.begin(), seen_.end(),
                            [&](const Seen& seen) { return seen.frame == frame; });
  if (known == seen_.end()) {
    if (seen_.size() < kMost) {
      seen_.push_back({frame, looks_});
      return;
    }
    known =
        std::min_element(seen_.begin(), seen_.end(),
                         [](const auto& a, const auto& b) { return a.look < b.look; });
  }
  *known = {frame, looks_};
}

bool Callees::Has(uint64_t frame) const {
  return std::any_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
    return seen.frame == frame && looks_ - seen.look <= kLooks;
  });
}

}  // namespace lull::relay
