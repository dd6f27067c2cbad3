// Memory for the pages of the segment, asked for before anything is written there.
//
// The segment is shared memory without reserved pages. Where the system has none left
// (strict overcommit, a memory cgroup that may not kill), the first touch of a page
// ends the process with SIGBUS. A system call that touches it fails instead: the
// process then sleeps for good, and SegmentHeader::ended says so. Preserves errno.
//
// A page costs a system call, 0.1 us beside what its first touch costs anyway.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/abi/segment.h"

namespace lull {

// Cold. Nothing of a new segment is backed yet: forgets what was of an earlier one.
// Before any other thread can see the segment.
void backing_begin();

// Cold. As if the relay had put the process to sleep, so that all that follows from
// that follows here: GPU tracing ends. The relay does not wake it up again, but for
// kUnread.
void end_recording(char* segment, abi::EndedBy why);

// Cold. True: all pages from `at` on are there; whatever they hold stays.
bool has_memory(char* at, size_t size);

// Cold. The same in a segment whose header is there; without memory recording ends.
__attribute__((cold, noinline)) bool back(char* segment, char* at, size_t size);

// The same in the index and the arena, where it is remembered: a load for each page
// that is there already.
__attribute__((cold, noinline)) bool back_and_remember(char* segment, size_t page);

inline constexpr size_t kBookBegin = abi::kIndexOffset;
inline constexpr size_t kBookPages = (abi::kPoolOffset - kBookBegin) / abi::kPage;
extern std::atomic<uint64_t> g_backed[(kBookPages + 63) / 64]
    __attribute__((visibility("hidden")));

// `at` and what it points to lie in one page.
template <typename T>
inline bool back_once(char* segment, const T* at) {
  static_assert(abi::kPage % sizeof(T) == 0 && kBookBegin % abi::kPage == 0);
  size_t page =
      (static_cast<size_t>(reinterpret_cast<const char*>(at) - segment) - kBookBegin) /
      abi::kPage;
  uint64_t word = g_backed[page / 64].load(std::memory_order_relaxed);
  return __builtin_expect((word >> (page % 64) & 1) != 0, 1) ||
         back_and_remember(segment, page);
}

inline bool back_once(char* segment, const void* at, size_t size) {
  size_t offset =
      static_cast<size_t>(static_cast<const char*>(at) - segment) - kBookBegin;
  size_t last = (offset + size - 1) / abi::kPage;
  for (size_t page = offset / abi::kPage; page <= last; ++page) {
    uint64_t word = g_backed[page / 64].load(std::memory_order_relaxed);
    if (__builtin_expect((word >> (page % 64) & 1) == 0, 0) &&
        !back_and_remember(segment, page)) {
      return false;
    }
  }
  return true;
}

}  // namespace lull
