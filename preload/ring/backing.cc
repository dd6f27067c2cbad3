#include "preload/ring/backing.h"

#include <linux/futex.h>

#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"

namespace lull {

std::atomic<uint64_t> g_backed[(kBookPages + 63) / 64];

namespace {

// The kernel adds 0 to the first word of the page, atomically: nothing changes, and the
// page is there, or the call fails. On every kernel since 2.6.14, unlike
// MADV_POPULATE_WRITE (5.14).
bool touch(char* page) {
  int errno_before = errno;
  uint32_t nobody_waits_here = 0;
  constexpr uint32_t kAddNothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  long result =
      syscall(SYS_futex, &nobody_waits_here, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0,
              nullptr, page, kAddNothing);
  errno = errno_before;
  return result >= 0;
}

}  // namespace

void end_recording(char* segment, abi::EndedBy why) {
  abi::SegmentView view(segment);
  // What is for good stays, and what is not does not take its place.
  std::atomic<uint32_t>& ended = view.header().ended;
  uint32_t before = 0;
  if (!ended.compare_exchange_strong(before, static_cast<uint32_t>(why)) &&
      why != abi::EndedBy::kUnread) {
    ended.store(static_cast<uint32_t>(why), std::memory_order_relaxed);
  }
  view.control().asleep_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
  view.control().armed.store(0, std::memory_order_release);
}

void backing_begin() {
  for (std::atomic<uint64_t>& word : g_backed) word.store(0, std::memory_order_relaxed);
}

bool has_memory(char* at, size_t size) {
  uintptr_t page = reinterpret_cast<uintptr_t>(at) & ~uintptr_t{abi::kPage - 1};
  for (; page < reinterpret_cast<uintptr_t>(at + size); page += abi::kPage) {
    if (!touch(reinterpret_cast<char*>(page))) return false;
  }
  return true;
}

bool back(char* segment, char* at, size_t size) {
  if (has_memory(at, size)) return true;
  end_recording(segment, abi::EndedBy::kNoMemory);
  return false;
}

bool back_and_remember(char* segment, size_t page) {
  if (!back(segment, segment + kBookBegin + page * abi::kPage, 1)) return false;
  g_backed[page / 64].fetch_or(uint64_t{1} << (page % 64), std::memory_order_relaxed);
  return true;
}

}  // namespace lull
