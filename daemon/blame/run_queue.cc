#include "daemon/blame/run_queue.h"

#include <algorithm>

#include "daemon/base/check.h"
#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

// A gap that a wait made is longer than that by what it would have been anyway.
constexpr uint64_t kUsualGapNs = 1'000'000;

}  // namespace

void RunQueue::Append(const Part& part) { parts_.Add(part); }

std::vector<RunQueue::Span> RunQueue::Candidates(const RunDelay& delay, Span span,
                                                 uint64_t limit_ns, bool longer) const {
  std::vector<Span> spans;
  size_t at = parts_.CountWhile(
      [&](const Part& part) { return part.idle.end_ns <= span.start_ns; });
  auto taken = std::partition_point(taken_.begin(), taken_.end(), [&](const Span& one) {
    return one.end_ns <= span.start_ns;
  });
  for (; at < parts_.size() && parts_[at].idle.start_ns < span.end_ns; ++at) {
    const Part& part = parts_[at];
    if (!part.residual || part.idle.tid != delay.tid) continue;
    if ((part.idle.end_ns - part.idle.start_ns > limit_ns) != longer) continue;
    uint64_t from = std::max(part.idle.start_ns, span.start_ns);
    uint64_t end = std::min(part.idle.end_ns, span.end_ns);
    while (taken != taken_.end() && taken->end_ns <= from) ++taken;
    for (auto it = taken; it != taken_.end() && it->start_ns < end; ++it) {
      if (from < it->start_ns) spans.push_back({from, it->start_ns});
      from = std::max(from, it->end_ns);
    }
    if (from < end) spans.push_back({from, end});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.end_ns - a.start_ns > b.end_ns - b.start_ns;
  });
  return spans;
}

uint64_t RunQueue::TakeOf(const std::vector<Span>& spans, uint64_t delay_ns) {
  for (const Span& span : spans) {
    const uint64_t length = std::min(delay_ns, span.end_ns - span.start_ns);
    if (length == 0) break;
    Take({span.start_ns, span.start_ns + length});
    delay_ns -= length;
  }
  return delay_ns;
}

void RunQueue::Apply(const RunDelay& delay) {
  parts_.Settle();
  const Span whole{delay.start_ns, delay.end_ns};
  const uint64_t limit_ns = Plus(delay.delay_ns, std::min(delay.delay_ns, kUsualGapNs));
  uint64_t left = TakeOf(Candidates(delay, whole, limit_ns, false), delay.delay_ns);
  if (left == 0) return;
  const uint64_t first_end_ns =
      delay.start_ns + std::min(delay.delay_ns, delay.end_ns - delay.start_ns);
  const uint64_t end_ns = first_end_ns + (delay.end_ns - first_end_ns) / 2;
  const uint64_t start_ns = std::max(delay.start_ns, end_ns - std::min(end_ns, left));
  TakeOf(Candidates(delay, {start_ns, end_ns}, limit_ns, true), left);
}

void RunQueue::Take(Span span) {
  auto at = std::partition_point(taken_.begin(), taken_.end(), [&](const Span& s) {
    return s.start_ns < span.start_ns;
  });
  taken_.insert(at, span);
}

// The next stretch of the part that was, or was not, taken.
Idle RunQueue::FirstOf(const Part& part) const {
  Idle idle = part.idle;
  auto it = std::partition_point(taken_.begin(), taken_.end(), [&](const Span& span) {
    return span.end_ns <= idle.start_ns;
  });
  if (it == taken_.end() || it->start_ns >= idle.end_ns) return idle;
  if (idle.start_ns < it->start_ns) {
    idle.end_ns = it->start_ns;
    return idle;
  }
  idle.cause = Cause::kRunQueue;
  uint64_t end = it->end_ns;
  while (++it != taken_.end() && it->start_ns == end) end = it->end_ns;
  idle.end_ns = std::min(idle.end_ns, end);
  return idle;
}

uint64_t RunQueue::FirstReachedFrom(uint64_t time_ns) {
  parts_.Settle();
  size_t at =
      parts_.CountWhile([&](const Part& part) { return part.idle.end_ns <= time_ns; });
  return at == parts_.size() ? kNever : parts_[at].idle.start_ns;
}

void RunQueue::Release(uint64_t time_ns, Sink& sink) {
  parts_.Settle();
  size_t told = 0;
  while (told < parts_.size() && parts_[told].idle.start_ns < time_ns) {
    Part& part = parts_[told];
    Idle idle = FirstOf(part);
    LULL_CHECK(idle.start_ns < idle.end_ns && idle.end_ns <= part.idle.end_ns,
               "a part of idle time is empty, or larger than the whole");
    sink.OnIdle(idle);
    part.idle.start_ns = idle.end_ns;
    if (idle.end_ns == part.idle.end_ns) ++told;
  }
  parts_.DropFront(told);
  uint64_t held = parts_.empty() ? time_ns : parts_[0].idle.start_ns;
  auto old = std::partition_point(taken_.begin(), taken_.end(), [&](const Span& span) {
    return span.end_ns <= held;
  });
  taken_.erase(taken_.begin(), old);
}

}  // namespace lull::blame
