#include "preload/autograd/callers.h"

#include "preload/abi/segment.h"

namespace lull {

static_assert(abi::kArenaSize / 16 < (uint64_t{1} << 31));

void BackwardCallers::enter(uint32_t generation, abi::Ref stack,
                            ThreadBackward* thread) {
  if (thread->depth++ > 0) return;
  const uint64_t word = uint64_t{generation} << 32 | uint64_t{stack} << 1 | 1;
  for (uint32_t i = 0; i < kMost; ++i) {
    uint64_t free = 0;
    if (words_[i].load(std::memory_order_relaxed) == 0 &&
        words_[i].compare_exchange_strong(free, word, std::memory_order_acq_rel)) {
      thread->place = i + 1;
      return;
    }
  }
  unplaced_.fetch_add(1, std::memory_order_acq_rel);
}

void BackwardCallers::leave(ThreadBackward* thread) {
  if (thread->depth == 0 || --thread->depth > 0) return;
  if (thread->place != 0) {
    words_[thread->place - 1].store(0, std::memory_order_release);
    thread->place = 0;
  } else {
    unplaced_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

abi::Ref BackwardCallers::only(uint32_t generation) const {
  if (unplaced_.load(std::memory_order_acquire) != 0) return 0;
  uint64_t found = 0;
  for (const std::atomic<uint64_t>& word : words_) {
    uint64_t seen = word.load(std::memory_order_acquire);
    if (seen == 0) continue;
    if (found != 0) return 0;
    found = seen;
  }
  if (found >> 32 != generation) return 0;
  return static_cast<abi::Ref>((found & 0xffffffff) >> 1);
}

}  // namespace lull
