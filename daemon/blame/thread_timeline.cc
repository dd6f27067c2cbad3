#include "daemon/blame/thread_timeline.h"

#include <algorithm>
#include <climits>
#include <tuple>

#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

// How many items a look back may pass: a bound for garbage, out of reach of what
// nests or is disjoint.
constexpr int kLookBack = 4096;
constexpr size_t kDeepest = 256;  // nested events; the outermost give way
// Launches that a thread can be ahead of the device. The driver blocks one that has
// about a thousand outstanding in a channel; this is for 16 channels.
constexpr size_t kMostAhead = 16'384;

Cause CauseOf(HostKind kind) {
  switch (kind) {
    case HostKind::kGc:
      return Cause::kGc;
    case HostKind::kAllocator:
      return Cause::kAllocator;
    case HostKind::kDataWait:
    case HostKind::kDataScope:
      return Cause::kDataWait;
    case HostKind::kGilWait:
      return Cause::kGilWait;
    case HostKind::kHandover:
    case HostKind::kHostWait:
      return Cause::kHostWait;
    case HostKind::kSync:
      return Cause::kSync;
    case HostKind::kLaunch:
      break;
  }
  return Cause::kUnknown;
}

// Which of a thread's states at an instant counts: the lowest. Within a DataLoader's
// __next__ all is data but collections, allocations and syncs.
int RankOf(HostKind kind, bool in_data_scope) {
  switch (kind) {
    case HostKind::kGc:
      return 0;
    case HostKind::kAllocator:
      return 1;
    case HostKind::kSync:
      return in_data_scope ? 2 : 7;
    case HostKind::kDataScope:
      return 3;
    case HostKind::kDataWait:
      return 4;
    case HostKind::kGilWait:
      return 5;
    default:
      return 6;
  }
}

}  // namespace

bool ThreadTimeline::HookOrder::operator()(const Hook& a, const Hook& b) const {
  return std::tie(a.start_ns, b.end_ns, b.series, a.launch) <
         std::tie(b.start_ns, a.end_ns, a.series, b.launch);
}

// Outer before inner, so that the last of several is the innermost.
bool ThreadTimeline::EventOrder::operator()(const Rest& left, const Rest& right) const {
  const HostEvent& a = left.event;
  const HostEvent& b = right.event;
  return std::tie(a.start_ns, b.end_ns, b.series, a.kind, left.whole_start_ns) <
         std::tie(b.start_ns, a.end_ns, a.series, b.kind, right.whole_start_ns);
}

bool ThreadTimeline::Add(const HostEvent& event) {
  if (event.kind == HostKind::kLaunch || event.kind == HostKind::kSync) {
    hooks_.Add({event.start_ns, event.end_ns, 0, event.series,
                event.kind == HostKind::kLaunch});
  }
  if (CauseOf(event.kind) == Cause::kUnknown) return true;
  Rest rest{event, event.start_ns};
  rest.event.start_ns = std::max(event.start_ns, flat_ns_);
  if (rest.event.start_ns < event.end_ns) events_.Add(rest);
  return event.start_ns >= asked_ns_;
}

void ThreadTimeline::Settle() {
  events_.Settle();
  for (size_t i = hooks_.Settle(); i < hooks_.size(); ++i) {
    uint64_t before = i == 0 ? 0 : hooks_[i - 1].reach_ns;
    hooks_[i].reach_ns = std::max(before, hooks_[i].end_ns);
  }
}

void ThreadTimeline::AddSubmission(const Submitted& call) {
  auto at = submitted_.end();
  auto follows = [&](const Submitted& s) {  // outer before inner, as for hooks
    return std::tie(s.start_ns, call.end_ns, call.series) >
           std::tie(call.start_ns, s.end_ns, s.series);
  };
  while (at != submitted_.begin() && follows(*std::prev(at))) --at;
  submitted_.insert(at, call);
}

const ThreadTimeline::Hook* ThreadTimeline::HookOf(uint64_t start_ns, uint64_t end_ns,
                                                   uint64_t tolerance_ns) const {
  uint64_t middle = start_ns + (end_ns - start_ns) / 2;
  uint64_t latest = Plus(middle, tolerance_ns);
  uint64_t earliest = Minus(middle, tolerance_ns);
  size_t at =
      hooks_.CountWhile([&](const Hook& hook) { return hook.start_ns <= latest; });
  const Hook* best = nullptr;
  uint64_t best_distance = kNever;
  for (int i = 0; i < kLookBack && at > 0 && hooks_[at - 1].reach_ns >= earliest; ++i) {
    const Hook& hook = hooks_[--at];
    uint64_t distance =
        std::max(Minus(hook.start_ns, middle), Minus(middle, hook.end_ns));
    if (distance > tolerance_ns || distance >= best_distance) continue;
    best = &hook;  // of those as near, the innermost comes first
    best_distance = distance;
  }
  return best;
}

bool ThreadTimeline::LastBefore(uint64_t time_ns, const Hook* own,
                                Submitted* last) const {
  bool found = has_dropped_;
  *last = dropped_launch_;
  auto call =
      std::partition_point(submitted_.begin(), submitted_.end(),
                           [&](const Submitted& s) { return s.start_ns <= time_ns; });
  for (int i = 0; i < kLookBack && call != submitted_.begin(); ++i) {
    --call;
    if (call->end_ns > time_ns) continue;
    if (!found || call->start_ns > last->start_ns) *last = *call;
    found = true;
    break;
  }
  size_t at =
      hooks_.CountWhile([&](const Hook& hook) { return hook.start_ns <= time_ns; });
  for (int i = 0; i < kLookBack && at > 0; ++i) {
    const Hook& hook = hooks_[--at];
    if (found && hook.start_ns < last->start_ns) break;
    if (!hook.launch || hook.end_ns > time_ns || &hook == own) continue;
    *last = {hook.start_ns, hook.end_ns, hook.series, hook.end_ns};
    return true;
  }
  return found;
}

void ThreadTimeline::Flatten(uint64_t time_ns) {
  while (flat_ns_ < time_ns) {
    while (!events_.empty() && events_[0].event.start_ns <= flat_ns_) {
      if (active_.size() == kDeepest) active_.erase(active_.begin());
      active_.push_back(events_[0]);
      events_.DropFront(1);
    }
    std::erase_if(active_,
                  [&](const Rest& rest) { return rest.event.end_ns <= flat_ns_; });
    uint64_t next = time_ns;
    if (!events_.empty()) next = std::min(next, events_[0].event.start_ns);
    for (const Rest& rest : active_) next = std::min(next, rest.event.end_ns);
    if (!active_.empty()) AddState(flat_ns_, next);
    flat_ns_ = next;
  }
}

void ThreadTimeline::AddState(uint64_t start_ns, uint64_t end_ns) {
  ThreadState state;
  state.start_ns = start_ns;
  state.end_ns = end_ns;
  const bool in_data_scope = std::any_of(
      active_.begin(), active_.end(),
      [](const Rest& rest) { return rest.event.kind == HostKind::kDataScope; });
  int best = INT_MAX;
  for (const Rest& rest : active_) {
    const HostEvent& event = rest.event;
    const Cause cause = CauseOf(event.kind);
    const int rank = RankOf(event.kind, in_data_scope);
    if (rank <= best) {
      best = rank;
      state.cause = cause;
      state.culprit = event.series;
      state.handover = event.kind == HostKind::kHandover;
    }
    if (cause == Cause::kSync) {
      state.sync = {event.series, rest.whole_start_ns, event.end_ns};
    }
  }
  if (!states_.empty()) {
    ThreadState& last = states_[states_.size() - 1];
    if (last.end_ns == start_ns && last.cause == state.cause &&
        last.culprit == state.culprit && last.sync == state.sync &&
        last.handover == state.handover) {
      last.end_ns = end_ns;
      return;
    }
  }
  states_.Add(state);
  states_.Settle();
}

SyncCall ThreadTimeline::SyncAt(uint64_t time_ns, uint64_t slack_ns) const {
  size_t at =
      states_.CountWhile([&](const ThreadState& s) { return s.start_ns <= time_ns; });
  for (; at > 0 && Plus(states_[at - 1].end_ns, slack_ns) > time_ns; --at) {
    if (states_[at - 1].sync.series != 0) return states_[at - 1].sync;
  }
  return {};
}

void ThreadTimeline::DropBefore(uint64_t states_ns, uint64_t hooks_ns) {
  Flatten(states_ns);
  size_t old = 0;
  while (old < states_.size() && states_[old].end_ns <= states_ns) ++old;
  states_.DropFront(old);
  const uint64_t all_here_ns = std::max(states_ns, hooks_ns);
  size_t settled =
      hooks_.CountWhile([&](const Hook& hook) { return hook.start_ns < all_here_ns; });
  for (old = 0; old < settled; ++old) {
    const Hook& hook = hooks_[old];
    if (hook.end_ns >= hooks_ns && settled - old <= kMostAhead) break;
    if (!hook.launch) continue;
    dropped_launch_ = {hook.start_ns, hook.end_ns, hook.series, hook.end_ns};
    has_dropped_ = true;
  }
  hooks_.DropFront(old);
  // Half at once, so that moving the rest costs no more than what is dropped.
  size_t half = submitted_.size() / 2;
  if (half > 0 && (submitted_[half].end_ns < hooks_ns || half > kMostAhead)) {
    submitted_.erase(submitted_.begin(),
                     submitted_.begin() + static_cast<ptrdiff_t>(half));
  }
}

void ThreadTimeline::AppendTimes(std::vector<uint64_t>* times) const {
  for (size_t i = 0; i < hooks_.size(); ++i) times->push_back(hooks_[i].end_ns);
  for (size_t i = 0; i < events_.size(); ++i) times->push_back(events_[i].event.end_ns);
  for (size_t i = 0; i < states_.size(); ++i) times->push_back(states_[i].end_ns);
}

}  // namespace lull::blame
