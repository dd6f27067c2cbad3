#include "daemon/blame/gap_judge.h"

#include <algorithm>

#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

class Verdict {
 public:
  Verdict(const Gap& gap, std::vector<Part>* parts) : gap_(gap), parts_(parts) {}

  void HostPart(uint64_t end_ns);
  void DevicePart(uint64_t start_ns) {
    const uint64_t returned_ns = std::min(gap_.call_end_ns, gap_.end_ns);
    if (returned_ns > Plus(start_ns, gap_.slow_call_ns)) {
      Add(start_ns, returned_ns, Cause::kLaunchCall, gap_.after, gap_.launcher);
      start_ns = returned_ns;
    }
    Add(start_ns, gap_.end_ns,
        gap_.dependency ? Cause::kDependency : Cause::kLaunchLatency, 0, gap_.launcher);
  }

 private:
  // T's state, instant by instant; where it only waited for another thread, P's.
  void State(const ThreadState& state, uint64_t start_ns, uint64_t end_ns);
  void Hop(const ThreadState& waiting, uint64_t start_ns, uint64_t end_ns);
  // The thread was in no state that would explain it.
  void Rest(uint64_t start_ns, uint64_t end_ns, const Suspect& suspect,
            const SyncCall& sync, bool launch_bound);
  void Add(uint64_t start_ns, uint64_t end_ns, Cause cause, uint32_t culprit,
           const Suspect& suspect, uint32_t other_wait = 0);

  bool Hops() const {
    return gap_.predecessor.thread != nullptr &&
           gap_.predecessor.tid != gap_.launcher.tid;
  }
  SyncCall SyncAtStart(const Suspect& suspect) const {
    if (!gap_.opening_known || !gap_.ending_known) return {};
    return suspect.thread->SyncAt(gap_.start_ns, gap_.sync_slack_ns);
  }

  const Gap& gap_;
  std::vector<Part>* parts_;
};

void Verdict::Add(uint64_t start_ns, uint64_t end_ns, Cause cause, uint32_t culprit,
                  const Suspect& suspect, uint32_t other_wait) {
  if (start_ns >= end_ns) return;
  Part part;
  part.residual = cause == Cause::kLaunchBound || cause == Cause::kHostCode;
  part.idle = {gap_.device, start_ns, end_ns, cause};
  if (cause != Cause::kUnknown) {
    part.idle.culprit = culprit;
    part.idle.before = suspect.before;
    part.idle.after = gap_.after;
    part.idle.tid = suspect.tid;
    part.idle.other_wait = other_wait;
  }
  parts_->push_back(part);
}

void Verdict::HostPart(uint64_t end_ns) {
  if (gap_.start_ns >= end_ns) return;
  const Suspect& launcher = gap_.launcher;
  launcher.thread->Ask(end_ns);
  if (Hops()) gap_.predecessor.thread->Ask(end_ns);
  const SyncCall sync = SyncAtStart(launcher);
  uint64_t at = gap_.start_ns;
  launcher.thread->VisitStates(at, end_ns, [&](const ThreadState& state) {
    uint64_t start = std::max(state.start_ns, at);
    uint64_t end = std::min(state.end_ns, end_ns);
    Rest(at, start, launcher, sync, gap_.launch_bound);
    State(state, start, end);
    at = end;
  });
  Rest(at, end_ns, launcher, sync, gap_.launch_bound);
}

void Verdict::State(const ThreadState& state, uint64_t start_ns, uint64_t end_ns) {
  if (state.handover && Hops()) {
    Hop(state, start_ns, end_ns);
  } else {
    Add(start_ns, end_ns, state.cause, state.culprit, gap_.launcher);
  }
}

void Verdict::Hop(const ThreadState& waiting, uint64_t start_ns, uint64_t end_ns) {
  const Suspect& suspect = gap_.predecessor;
  const SyncCall sync = SyncAtStart(suspect);
  suspect.thread->VisitStates(start_ns, end_ns, [&](const ThreadState& state) {
    uint64_t start = std::max(state.start_ns, start_ns);
    uint64_t end = std::min(state.end_ns, end_ns);
    Rest(start_ns, start, suspect, sync, false);
    if (state.handover) {  // both wait: T's wait is what is left
      Add(start, end, waiting.cause, waiting.culprit, gap_.launcher, state.culprit);
    } else {
      Add(start, end, state.cause, state.culprit, suspect);
    }
    start_ns = end;
  });
  Rest(start_ns, end_ns, suspect, sync, false);
}

void Verdict::Rest(uint64_t start_ns, uint64_t end_ns, const Suspect& suspect,
                   const SyncCall& sync, bool launch_bound) {
  if (sync.series != 0) {
    // Without the sync the host would be ahead by the time that it was blocked, and no
    // more: what it does later keeps the device waiting anyway.
    uint64_t blocked_ns = sync.end_ns - sync.start_ns;
    uint64_t until =
        std::clamp(Plus(sync.end_ns, blocked_ns), start_ns, std::max(start_ns, end_ns));
    Add(start_ns, until, Cause::kSync, sync.series, suspect);
    start_ns = until;
  }
  if (!gap_.opening_known || !gap_.ending_known) {
    Add(start_ns, end_ns, Cause::kUnknown, 0, suspect);
  } else {
    Add(start_ns, end_ns, launch_bound ? Cause::kLaunchBound : Cause::kHostCode, 0,
        suspect);
  }
}

bool SameVerdict(const Part& a, const Part& b) {
  return a.idle.end_ns == b.idle.start_ns && a.idle.cause == b.idle.cause &&
         a.idle.culprit == b.idle.culprit && a.idle.before == b.idle.before &&
         a.idle.after == b.idle.after && a.idle.tid == b.idle.tid &&
         a.idle.other_wait == b.idle.other_wait;
}

void Append(const Part& part, std::vector<Part>* parts) {
  if (part.idle.start_ns >= part.idle.end_ns) return;
  if (!parts->empty() && SameVerdict(parts->back(), part)) {
    parts->back().idle.end_ns = part.idle.end_ns;
  } else {
    parts->push_back(part);
  }
}

// What overlaps a lost span is unknown, whatever was found.
void AppendWithoutLost(Part part, const Union& lost, std::vector<Part>* parts) {
  const uint64_t end = part.idle.end_ns;
  uint64_t lost_start, lost_end;
  while (part.idle.start_ns < end &&
         lost.FirstAfter(part.idle.start_ns, &lost_start, &lost_end) &&
         lost_start < end) {
    Part unknown;
    unknown.idle.device = part.idle.device;
    unknown.idle.start_ns = std::max(part.idle.start_ns, lost_start);
    unknown.idle.end_ns = std::min(end, lost_end);
    part.idle.end_ns = unknown.idle.start_ns;
    Append(part, parts);
    Append(unknown, parts);
    part.idle.start_ns = unknown.idle.end_ns;
  }
  part.idle.end_ns = end;
  Append(part, parts);
}

}  // namespace

void Judge(const Gap& gap, const Union& lost, std::vector<Part>* parts) {
  if (gap.start_ns >= gap.end_ns) return;
  std::vector<Part> found;
  Verdict verdict(gap, &found);
  if (gap.launcher.thread == nullptr) {
    Part unknown;
    unknown.idle = {gap.device, gap.start_ns, gap.end_ns, Cause::kUnknown};
    found.push_back(unknown);
  } else {
    uint64_t late = std::clamp(gap.call_ns, gap.start_ns, gap.end_ns);
    verdict.HostPart(late);
    verdict.DevicePart(late);
  }
  for (const Part& part : found) AppendWithoutLost(part, lost, parts);
}

}  // namespace lull::blame
