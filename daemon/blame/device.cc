#include "daemon/blame/device.h"

#include <algorithm>

#include "daemon/base/check.h"
#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

// Weeks of tracing between two events are garbage: told as one piece.
constexpr uint64_t kMostPieces = 1 << 20;

}  // namespace

void Device::StartTracing(uint64_t time_ns) {
  floor_ns = time_ns;
  floor_torn = false;
  traced_.push_back({time_ns, kNever});
}

void Device::AddBusy(uint64_t start_ns, uint64_t end_ns, bool kernel) {
  busy_.Add(start_ns, end_ns);
  if (kernel) kernels_.Add(start_ns, end_ns);
}

uint64_t Device::told_ns() const {
  return traced_.empty() ? kNever : std::max(covered_ns_, traced_.front().start_ns);
}

void Device::Tell(uint64_t judged_ns, const RunDelays& delays, uint64_t unit_ns,
                  bool all) {
  uint64_t open = used ? ApplyDelays(judged_ns, delays) : kNever;
  if (!all) judged_ns = std::min(judged_ns, run_queue_.FirstReachedFrom(open));
  TellCoverage(judged_ns, unit_ns, all);
  TellBefore(all ? judged_ns : covered_ns_);
}

// Returns the time from which on other delays may reach into parts.
uint64_t Device::ApplyDelays(uint64_t until_ns, const RunDelays& delays) {
  size_t at = delays.CountWhile(
      [&](const RunDelay& delay) { return delay.end_ns <= delays_ns_; });
  for (; at < delays.size() && delays[at].end_ns <= until_ns; ++at) {
    run_queue_.Apply(delays[at]);
  }
  delays_ns_ = std::max(delays_ns_, until_ns);
  uint64_t open = kNever;
  for (; at < delays.size(); ++at) open = std::min(open, delays[at].start_ns);
  return open;
}

void Device::TellCoverage(uint64_t until_ns, uint64_t unit_ns, bool all) {
  while (!traced_.empty() && traced_.front().start_ns < until_ns) {
    const TracedStretch stretch = traced_.front();
    uint64_t from = std::max(covered_ns_, stretch.start_ns);
    uint64_t end = std::min(until_ns, stretch.end_ns);
    if (unit_ns != 0 && from < end) {
      uint64_t first = from / unit_ns;
      uint64_t last = end / unit_ns;
      if (last - first > kMostPieces) first = last - 1;
      for (; first < last; ++first) TellPiece(&from, (first + 1) * unit_ns);
    }
    bool done = stretch.end_ns <= until_ns;
    if ((done || all) && from < end) TellPiece(&from, end);
    if (!done) return;
    traced_.pop_front();
  }
}

void Device::TellPiece(uint64_t* from_ns, uint64_t end_ns) {
  LULL_CHECK(covered_ns_ <= *from_ns && *from_ns < end_ns,
             "traced time is told twice, or backwards");
  const uint64_t busy_ns = busy_.Covered(*from_ns, end_ns);
  const uint64_t kernel_ns = kernels_.Covered(*from_ns, end_ns);
  LULL_CHECK(kernel_ns <= busy_ns && busy_ns <= end_ns - *from_ns,
             "a device was busy for longer than there was time");
  sink_.OnCoverage({id, *from_ns, end_ns, busy_ns, kernel_ns});
  *from_ns = covered_ns_ = end_ns;
  busy_.DropBefore(end_ns);
  kernels_.DropBefore(end_ns);
}

void Device::TellBefore(uint64_t time_ns) {
  run_queue_.Release(time_ns, sink_);
  submissions_.Settle();
  size_t told = 0;
  for (; told < submissions_.size(); ++told) {
    if (submissions_[told].operation.start_ns >= time_ns) break;
    sink_.OnSubmission(submissions_[told]);
  }
  submissions_.DropFront(told);
}

}  // namespace lull::blame
