#include "preload/autograd/callers.h"

#include "preload/abi/segment.h"

namespace lull {

static_assert(abi::kArenaSize / 16 < (uint64_t{1} << 31));

BackwardCallers::Entry BackwardCallers::enter(uint32_t generation, abi::Ref stack,
                                              uintptr_t frame, ThreadBackward* thread) {
  const uint64_t word = uint64_t{generation} << 32 | uint64_t{stack} << 1 | 1;
  if (thread->place != 0) {
    uint64_t before =
        words_[thread->place - 1].exchange(word, std::memory_order_acq_rel);
    // Stacks grow downwards: a call that stands no lower than the one that holds the
    // place is not within it, so that one was left by an exception.
    if (frame >= thread->frame) {
      before = 0;
      thread->frame = frame;
    }
    return {thread->place, before};
  }
  for (uint32_t i = 0; i < kMost; ++i) {
    uint64_t free = 0;
    if (words_[i].load(std::memory_order_relaxed) == 0 &&
        words_[i].compare_exchange_strong(free, word, std::memory_order_acq_rel)) {
      *thread = {i + 1, frame};
      return {i + 1, 0};
    }
  }
  unplaced_.fetch_add(1, std::memory_order_acq_rel);
  return {0, 0};
}

void BackwardCallers::leave(const Entry& entry, ThreadBackward* thread) {
  if (entry.place == 0) {
    unplaced_.fetch_sub(1, std::memory_order_acq_rel);
    return;
  }
  words_[entry.place - 1].store(entry.before, std::memory_order_release);
  if (entry.before == 0) *thread = {0, 0};
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
