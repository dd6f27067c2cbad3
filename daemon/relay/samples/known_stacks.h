// Stacks that looks have found whole: what two copies show is believed if it is one of
// them, for a torn copy leads to stacks that never were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "daemon/relay/samples/frames.h"

namespace lull::relay {

class KnownStacks {
 public:
  void Add(const std::vector<SeenFrame>& frames) {
    if (known_.size() == kMost) known_.clear();
    known_.insert(HashOf(frames));
  }
  bool Has(const std::vector<SeenFrame>& frames) const {
    return known_.contains(HashOf(frames));
  }

 private:
  static constexpr size_t kMost = 4096;

  // By code, and by the calls: where the innermost frame is at changes all the time.
  static uint64_t HashOf(const std::vector<SeenFrame>& frames) {
    uint64_t hash = frames.size();
    for (size_t i = 0; i < frames.size(); ++i) {
      hash = absl::HashOf(hash, frames[i].code, i == 0 ? 0 : frames[i].lasti);
    }
    return hash;
  }

  absl::flat_hash_set<uint64_t> known_;
};

}  // namespace lull::relay
