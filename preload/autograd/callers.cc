#include "preload/autograd/callers.h"

#include <cstdint>

#include "preload/abi/segment.h"

namespace lull {

static_assert(abi::kArenaSize / 16 < (uint64_t{1} << 31));

void BackwardCallers::enter(uint32_t generation, abi::Ref stack, bool came_late,
                            ThreadBackward* thread) {
  if (thread->depth++ > 0) return;
  const uint64_t word = uint64_t{generation} << 32 | uint64_t{stack} << 1 | 1;
  for (uint32_t i = 0; i < kMost; ++i) {
    uint64_t free = 0;
    if (words_[i].load(std::memory_order_relaxed) == 0 &&
        words_[i].compare_exchange_strong(free, word, std::memory_order_acq_rel)) {
      const uint64_t newest = newest_.load(std::memory_order_relaxed);
      int32_t before = came_late ? INT32_MAX : kNoTask;
      if (newest != 0 && newest >> 32 == generation) {
        before = static_cast<int32_t>(newest & UINT32_MAX);
      }
      // The engine's threads have this call's work later.
      before_[i].store(before, std::memory_order_release);
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

abi::Ref BackwardCallers::only(uint32_t generation, int32_t task) {
  if (task >= 0) {
    const uint64_t seen = uint64_t{generation} << 32 | static_cast<uint32_t>(task);
    uint64_t newest = newest_.load(std::memory_order_relaxed);
    while (newest < seen &&
           !newest_.compare_exchange_weak(newest, seen, std::memory_order_relaxed)) {
    }
  }
  if (unplaced_.load(std::memory_order_acquire) != 0) return 0;
  uint64_t found = 0;
  uint32_t place = 0;
  for (uint32_t i = 0; i < kMost; ++i) {
    uint64_t seen = words_[i].load(std::memory_order_acquire);
    if (seen == 0) continue;
    if (found != 0) return 0;
    found = seen;
    place = i;
  }
  if (found >> 32 != generation) return 0;
  if (task >= 0 && task <= before_[place].load(std::memory_order_acquire)) return 0;
  return static_cast<abi::Ref>((found & 0xffffffff) >> 1);
}

}  // namespace lull
