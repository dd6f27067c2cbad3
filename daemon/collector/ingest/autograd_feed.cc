#include "daemon/collector/ingest/autograd_feed.h"

#include "daemon/aggregate/host_sample.h"

namespace lull::collector {

void AutogradFeed::Add(const Event& event) {
  const Series& series = series_[event.series];
  using aggregate::SampleRole;
  switch (series.type) {
    case EventType::kHostSample: {
      const SampleRole role = aggregate::RoleOf(series);
      if (series.python_stack != 0 || event.duration_ns != 0 ||
          (role != SampleRole::kAutograd && role != SampleRole::kFeeder)) {
        return;
      }
      return samples_.AddSample(
          event, aggregate::StateOf(series) == aggregate::SampleState::kBlocked);
    }
    case EventType::kLaunch:
    case EventType::kCopyAsync:
    case EventType::kSync:
    case EventType::kDeviceMemory:
    case EventType::kTorchMemory: {
      if (series.python_stack == 0) return;
      if (callers_.size() <= event.series) callers_.resize(event.series + 1);
      uint32_t& caller = callers_[event.series];
      if (caller == 0) caller = series_.CallerOf(event.series) + 1;
      if (caller != 1) samples_.AddMark(event, caller);
      return;
    }
    default:
      return;
  }
}

std::vector<Event> AutogradFeed::Advance(uint64_t judged_ns) {
  std::vector<Event> events;
  for (const EngineSamples::Found& found : samples_.Advance(judged_ns)) {
    const Series& sample = series_[found.sample.series];
    const Series& mark = series_[found.mark];
    Series series{.type = EventType::kEngineSample, .variant = sample.variant};
    if (!series_.full()) {
      series.python_stack = mark.python_stack;
      series.line_site = mark.line_site;
      series.function_site = mark.function_site;
    }
    Event event = found.sample;
    event.series = series_.Intern(series);
    events.push_back(event);
  }
  return events;
}

}  // namespace lull::collector
