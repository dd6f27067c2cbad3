#include "daemon/collector/ingest/engine_samples.h"

#include <algorithm>

namespace lull::collector {

using aggregate::Event;

namespace {

// A thread that does nothing for so long is gone, or has nothing to do.
constexpr uint64_t kForgottenNs = 60'000'000'000;

}  // namespace

void EngineSamples::AddMark(const Event& event, uint32_t caller) {
  Thread& thread = threads_[event.tid];
  // If the clock went back, nothing can be said.
  if (!thread.marks.empty() && event.start_ns < thread.marks.back().start_ns) return;
  thread.marks.push_back(
      {event.start_ns, event.start_ns + event.duration_ns, event.series, caller});
  if (++marks_ <= kMost) return;
  for (auto& [tid, one] : threads_) {
    const size_t half = (one.marks.size() + 1) / 2;
    one.marks.erase(one.marks.begin(),
                    one.marks.begin() + static_cast<ptrdiff_t>(half));
    marks_ -= half;
  }
}

void EngineSamples::AddSample(const Event& sample, bool blocked) {
  if (samples_ >= kMost) return;
  threads_[sample.tid].samples.push_back({sample, blocked});
  ++samples_;
}

const EngineSamples::Mark* EngineSamples::Find(const Thread& thread,
                                               const Sample& sample) const {
  const uint64_t time_ns = sample.event.start_ns;
  auto next = std::upper_bound(
      thread.marks.begin(), thread.marks.end(), time_ns,
      [](uint64_t time, const Mark& mark) { return time < mark.start_ns; });
  if (next == thread.marks.begin()) return nullptr;
  const Mark& before = *(next - 1);
  if (time_ns < before.end_ns) return &before;
  if (sample.blocked || next == thread.marks.end()) return nullptr;
  return next->caller == before.caller ? &*next : nullptr;
}

std::vector<EngineSamples::Found> EngineSamples::Advance(uint64_t judged_ns) {
  std::vector<Found> found;
  if (judged_ns < kLateNs) return found;
  const uint64_t until = judged_ns - kLateNs;
  absl::erase_if(threads_, [&](auto& one) {
    Thread& thread = one.second;
    std::deque<Sample> later;
    for (const Sample& sample : thread.samples) {
      if (sample.event.start_ns > until) {
        later.push_back(sample);
        continue;
      }
      --samples_;
      const bool told = sample.event.start_ns + kLateNs <= told_ns_;
      const Mark* mark = told ? nullptr : Find(thread, sample);
      if (mark != nullptr) found.push_back({sample.event, mark->series});
    }
    thread.samples.swap(later);
    // The last one before any sample that may still come stays.
    while (thread.marks.size() > 1 && thread.marks[1].start_ns <= until) {
      thread.marks.pop_front();
      --marks_;
    }
    if (thread.samples.empty() && thread.marks.size() == 1 &&
        thread.marks.front().start_ns + kForgottenNs <= until) {
      thread.marks.clear();
      --marks_;
    }
    return thread.samples.empty() && thread.marks.empty();
  });
  return found;
}

}  // namespace lull::collector
