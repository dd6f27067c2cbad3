#include "daemon/export/call_lines.h"

#include <algorithm>
#include <utility>

namespace lull::exports {
namespace {

constexpr uint64_t kTolerance = 5'000;       // of the two clocks, as in blame
constexpr uint64_t kPatience = 100'000'000;  // for a call that CUPTI tells later
constexpr uint64_t kLookEvery = 10'000'000;
constexpr size_t kMostHeld = 65'536;
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
  threads_[hook.slice.tid].hooks.push_back(hook);
  ++held_;
}

void CallLines::AddCall(const Slice& call) {
  newest_ns_ = std::max(newest_ns_, EndOf(call));
  std::deque<Slice>& calls = threads_[call.tid].calls;
  calls.push_back(call);
  if (calls.size() > kMostCalls) calls.pop_front();
}

// The nearest one, as in blame; of several within the hook, a call of the driver within
// one of the runtime, the longest.
void CallLines::Settle(Thread& thread, std::vector<Held>* done) {
  Held hook = thread.hooks.front();
  thread.hooks.pop_front();
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
  done->push_back(hook);
}

std::vector<CallLines::Held> CallLines::Take() {
  std::vector<Held> done;
  if (held_ > kMostHeld) return TakeAll();
  if (newest_ns_ < looked_at_ns_ + kLookEvery) return done;
  looked_at_ns_ = newest_ns_;
  for (auto& [tid, thread] : threads_) {
    while (!thread.hooks.empty() &&
           EndOf(thread.hooks.front().slice) + kPatience < newest_ns_) {
      Settle(thread, &done);
    }
  }
  held_ -= done.size();
  return done;
}

std::vector<CallLines::Held> CallLines::TakeAll() {
  std::vector<Held> done;
  for (auto& [tid, thread] : threads_) {
    while (!thread.hooks.empty()) Settle(thread, &done);
  }
  held_ = 0;
  return done;
}

}  // namespace lull::exports
