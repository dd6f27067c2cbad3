#include "daemon/relay/samples/python_threads.h"

#include <algorithm>
#include <array>

#include "daemon/procfs/live_threads.h"

namespace lull::relay {
namespace {

// Bytes from the beginning of struct pthread. The number stands at 720 in glibc's of
// x86-64, and at 208 in that of aarch64.
constexpr size_t kPthreadBytes = 1024;

// Both links are read at once.
static_assert(abi::kStateNext == abi::kStatePrevious + 8);

}  // namespace

void PythonThreads::Walk(const FrameLayout& layout, uint64_t main_state, bool newer,
                         std::vector<PythonThread>* found) {
  uint64_t at = main_state;
  Links links;
  if (!memory_.Read(at + abi::kStatePrevious, &links, sizeof(links))) return;
  for (size_t i = 0; i < kMost; ++i) {
    const uint64_t from = at;
    at = newer ? links.previous : links.next;
    if (!Plausible(at)) return;
    PythonThread one;
    one.state = at;
    if (!memory_.Read(at + abi::kStatePrevious, &links, sizeof(links)) ||
        (newer ? links.next : links.previous) != from ||
        !memory_.Read(at + static_cast<uint64_t>(layout.at.tstate_thread_id),
                      &one.thread, sizeof(one.thread))) {
      return;
    }
    if (Plausible(one.thread)) found->push_back(one);
  }
}

uint32_t PythonThreads::TidOf(uint64_t thread, uint64_t main_thread) {
  std::array<uint32_t, kPthreadBytes / sizeof(uint32_t)> main, other;
  if (!memory_.Read(main_thread, main.data(), kPthreadBytes) ||
      !memory_.Read(thread, other.data(), kPthreadBytes)) {
    return 0;
  }
  const auto pid = static_cast<uint32_t>(pid_);
  for (size_t i = 0; i < main.size(); ++i) {
    if (main[i] != pid || other[i] == pid || other[i] == 0) continue;
    auto live = LiveThreads(pid_, false, {other[i]});
    if (live && live->contains(other[i])) return other[i];
  }
  return 0;
}

std::vector<PythonThread> PythonThreads::Others(const FrameLayout& layout,
                                                uint64_t main_state,
                                                uint64_t main_thread) {
  std::vector<PythonThread> found;
  Walk(layout, main_state, true, &found);
  Walk(layout, main_state, false, &found);
  if (found.size() > kMost) found.resize(kMost);
  for (PythonThread& one : found) {
    auto known = std::find_if(known_.begin(), known_.end(), [&](const auto& before) {
      return before.state == one.state && before.thread == one.thread;
    });
    one.tid = known != known_.end() ? known->tid : TidOf(one.thread, main_thread);
  }
  std::erase_if(found, [](const PythonThread& one) { return one.tid == 0; });
  known_ = found;
  return found;
}

}  // namespace lull::relay
