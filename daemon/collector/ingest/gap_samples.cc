#include "daemon/collector/ingest/gap_samples.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/aggregate/event_views.h"

namespace lull::collector {
namespace {

// How many stretches a look back may pass: a bound for garbage. A second of them, which
// is what a stretch reaches at most, is of a few thousand launches.
constexpr int kLookBack = 16'384;

template <typename Items>
void DropOlderHalf(Items& items) {
  items.erase(items.begin(),
              std::next(items.begin(), static_cast<ptrdiff_t>((items.size() + 1) / 2)));
}

}  // namespace

void GapSamples::Find(ThreadId tid, const Sample& sample, const Idle& idle) {
  if (replaying_) return;
  Sample part = sample;
  if (sample.duration_ns > 0) {
    part.time_ns = std::max(sample.time_ns, idle.start_ns);
    const uint64_t end = std::min(sample.end_ns(), idle.end_ns);
    if (part.time_ns >= end) return;
    part.weight_ns = part.duration_ns = end - part.time_ns;
  }
  found_.push_back({part, idle.series, tid});
}

void GapSamples::AddSample(const aggregate::Event& event) {
  const SampleView told{event};
  const Sample sample{event.start_ns, event.duration_ns, told.weight_ns(), told.doing(),
                      event.series};
  Thread& thread = threads_[ThreadId{event.tid}];
  thread.samples.emplace_hint(thread.samples.end(), sample.time_ns, sample);
  thread.has_stretches |= sample.duration_ns > 0;
  auto at = sample.duration_ns > 0 ? thread.idle.lower_bound(sample.end_ns())
                                   : thread.idle.upper_bound(sample.time_ns);
  for (int i = 0; i < kLookBack && at != thread.idle.begin(); ++i) {
    --at;
    if (sample.time_ns > at->first && sample.time_ns - at->first >= thread.longest_ns) {
      break;
    }
    if (sample.time_ns < at->second.end_ns)
      Find(ThreadId{event.tid}, sample, at->second);
  }
  if (++held_ > kMost) MakeRoom();
}

void GapSamples::AddIdle(const aggregate::Event& event) {
  const Idle idle{event.start_ns, event.start_ns + event.duration_ns, event.series};
  Thread& thread = threads_[ThreadId{event.tid}];
  thread.idle.emplace_hint(thread.idle.end(), event.start_ns, idle);
  thread.longest_ns = std::max(thread.longest_ns, event.duration_ns);
  auto end = thread.samples.lower_bound(idle.end_ns);
  auto at = thread.samples.lower_bound(idle.start_ns);
  // Of those before the stretch one at most reaches into it.
  auto before = at;
  for (int i = 0; thread.has_stretches && i < kLookBack; ++i) {
    if (before == thread.samples.begin()) break;
    --before;
    if (before->second.duration_ns == 0) continue;
    if (before->second.end_ns() > idle.start_ns) {
      Find(ThreadId{event.tid}, before->second, idle);
    }
    break;
  }
  for (; at != end; ++at) Find(ThreadId{event.tid}, at->second, idle);
  if (++held_ > kMost) MakeRoom();
}

std::vector<GapSamples::Found> GapSamples::Take() { return std::exchange(found_, {}); }

void GapSamples::Forget(uint64_t before_ns) {
  absl::erase_if(threads_, [&](auto& one) {
    Thread& thread = one.second;
    while (!thread.samples.empty() && thread.samples.begin()->first < before_ns) {
      thread.samples.erase(thread.samples.begin());
      --held_;
    }
    while (!thread.idle.empty() && thread.idle.begin()->second.end_ns <= before_ns) {
      thread.idle.erase(thread.idle.begin());
      --held_;
    }
    return thread.samples.empty() && thread.idle.empty();
  });
}

// The older half of each thread's goes.
void GapSamples::MakeRoom() {
  held_ = 0;
  for (auto& [tid, thread] : threads_) {
    DropOlderHalf(thread.samples);
    DropOlderHalf(thread.idle);
    held_ += thread.samples.size() + thread.idle.size();
  }
}

}  // namespace lull::collector
