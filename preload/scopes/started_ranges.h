// Ranges that are ended by their number (nvtxRangeStart), by whichever thread, in any
// order: they are within what the thread that starts them has open, and nothing is
// within them. A table of its own: a program that never ends its ranges fills this one
// and takes no room from scopes that nest.
//
// Any number of threads, no locks, no memory but its own. A number is given once.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/scopes/open_scopes.h"

namespace lull {

class StartedRanges {
 public:
  static constexpr uint32_t kMost = 256;

  // nullptr: as many are open. `number` is not 0 and below 2^51; nobody looks for it
  // before the caller has filled in its scope and told it.
  Scope* begin(uint64_t number, uint32_t generation) {
    const uint64_t word = word_of(number, generation);
    for (uint32_t i = 0; i < kMost; ++i) {
      const uint32_t at = static_cast<uint32_t>(number + i) % kMost;
      uint64_t seen = words_[at].load(std::memory_order_relaxed);
      const bool taken = seen != 0 && seen >> kShift == word >> kShift;
      if (!taken &&
          words_[at].compare_exchange_strong(seen, word, std::memory_order_acq_rel)) {
        open_.fetch_add(1, std::memory_order_relaxed);
        return &scopes_[at];
      }
    }
    return nullptr;
  }

  // False: it is not open, or was begun in another generation.
  bool end(uint64_t number, uint32_t generation, Scope* scope) {
    if (open_.load(std::memory_order_relaxed) == 0) return false;
    const uint64_t word = word_of(number, generation);
    for (uint32_t i = 0; i < kMost; ++i) {
      const uint32_t at = static_cast<uint32_t>(number + i) % kMost;
      uint64_t seen = words_[at].load(std::memory_order_acquire);
      if (seen != word) continue;
      *scope = scopes_[at];
      // Once, whoever ends it twice.
      if (!words_[at].compare_exchange_strong(seen, 0, std::memory_order_acq_rel)) {
        return false;
      }
      open_.fetch_sub(1, std::memory_order_relaxed);
      return true;
    }
    return false;
  }

 private:
  static constexpr int kShift = 51;
  static uint64_t word_of(uint64_t number, uint32_t generation) {
    return number | uint64_t{generation} << kShift;
  }

  // At least as many as are open: those of another generation count, too. Of a program
  // whose ranges are thinned it is 0, and an end costs a load.
  std::atomic<uint32_t> open_{0};
  std::atomic<uint64_t> words_[kMost];  // number and the low bits of the generation
  Scope scopes_[kMost] = {};
};

}  // namespace lull
