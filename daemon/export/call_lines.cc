#include "daemon/export/call_lines.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lull::exports {
namespace {

constexpr uint64_t kTolerance = 5'000;  // of the two clocks, as in blame
// For a call that CUPTI tells later: it hands out what it has every second or so.
constexpr uint64_t kPatience = 10'000'000'000;
constexpr uint64_t kLookEvery = 1'000'000'000;
constexpr size_t kMostCalls = 4'096;  // of a thread

uint64_t EndOf(const Slice& slice) { return slice.start_ns + slice.duration_ns; }

// From the hook to the middle of the call; 0: it is around that.
uint64_t Distance(const Slice& hook, const Slice& call) {
  const uint64_t middle = call.start_ns + call.duration_ns / 2;
  if (middle < hook.start_ns) return hook.start_ns - middle;
  return middle > EndOf(hook) ? middle - EndOf(hook) : 0;
}

}  // namespace

void CallLines::AddHook(const Held& hook) {
  newest_ns_ = std::max(newest_ns_, EndOf(hook.slice));
  threads_[hook.slice.tid].hooks.push_back(hook);
  if (++held_ > kMostHeld) SettleBefore(EndOfTheOlderHalf());
}

void CallLines::AddCall(const Slice& call) {
  newest_ns_ = std::max(newest_ns_, EndOf(call));
  Thread& thread = threads_[call.tid];
  thread.calls.push_back(call);
  if (thread.calls.size() > kMostCalls) thread.calls.pop_front();
  while (!thread.hooks.empty() &&
         EndOf(thread.hooks.front().slice) + kTolerance < call.start_ns) {
    Settle(thread);
  }
}

// The nearest one, as in blame; of several within the hook, a call of the driver within
// one of the runtime, the longest.
void CallLines::Settle(Thread& thread) {
  Held hook = thread.hooks.front();
  thread.hooks.pop_front();
  --held_;
  std::deque<Slice>& calls = thread.calls;
  while (!calls.empty() && EndOf(calls.front()) + kTolerance < hook.slice.start_ns) {
    calls.pop_front();
  }
  const Slice* best = nullptr;
  for (const Slice& call : calls) {
    if (call.start_ns > EndOf(hook.slice) + kTolerance) break;
    const auto rank = [&](const Slice& one) {
      return std::make_pair(Distance(hook.slice, one), UINT64_MAX - one.duration_ns);
    };
    if (rank(call).first > kTolerance) continue;
    if (best == nullptr || rank(call) < rank(*best)) best = &call;
  }
  if (best != nullptr) {
    hook.slice.start_ns = best->start_ns;
    hook.slice.duration_ns = best->duration_ns;
    hook.has_call = true;
  }
  done_.push_back(hook);
}

void CallLines::SettleBefore(uint64_t time_ns) {
  for (auto it = threads_.begin(); it != threads_.end();) {
    Thread& thread = it->second;
    while (!thread.hooks.empty() && EndOf(thread.hooks.front().slice) <= time_ns) {
      Settle(thread);
    }
    // Threads come and go.
    const bool over = thread.hooks.empty() &&
                      (thread.calls.empty() || EndOf(thread.calls.back()) <= time_ns);
    it = over ? threads_.erase(it) : std::next(it);
  }
}

uint64_t CallLines::EndOfTheOlderHalf() const {
  std::vector<uint64_t> ends;
  for (const auto& [tid, thread] : threads_) {
    for (const Held& hook : thread.hooks) ends.push_back(EndOf(hook.slice));
  }
  const auto middle = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  return *middle;
}

std::vector<CallLines::Held> CallLines::Take() {
  if (newest_ns_ > looked_at_ns_ + kLookEvery) {
    looked_at_ns_ = newest_ns_;
    if (newest_ns_ > kPatience) SettleBefore(newest_ns_ - kPatience);
  }
  return std::exchange(done_, {});
}

std::vector<CallLines::Held> CallLines::TakeAll() {
  SettleBefore(UINT64_MAX);
  return std::exchange(done_, {});
}

}  // namespace lull::exports
