#include "daemon/collector/ingest/derived_series.h"

namespace lull::collector {

namespace {

void TakeCulprit(const Series& from, Series& to) {
  to.api = from.api;
  to.python_stack = from.python_stack;
  // For a scope those are names, and no place.
  to.native_stack = from.type == EventType::kScope ? 0 : from.native_stack;
  to.line_site = from.line_site;
  to.function_site = from.function_site;
}

}  // namespace

// If two wait for each other: the one whose Python line is known. In the backward pass
// the engine's thread has no Python: the line is where the program called
// backward().
uint32_t DerivedSeries::CulpritOf(const blame::Idle& idle) const {
  if (idle.other_wait == 0 || series_[idle.culprit].python_stack != 0 ||
      series_[idle.other_wait].python_stack == 0) {
    return idle.culprit;
  }
  return idle.other_wait;
}

uint32_t DerivedSeries::OfIdle(const blame::Idle& idle) {
  const uint32_t culprit = CulpritOf(idle);
  auto [it, fresh] = known_.try_emplace(
      Key{EventType::kIdle, idle.device, culprit, idle.before, idle.after, idle.cause});
  if (!fresh) return it->second;
  Series series{.type = EventType::kIdle,
                .variant = static_cast<uint8_t>(idle.cause),
                .shape = Number(idle.device)};
  if (!series_.full()) {
    TakeCulprit(series_[culprit != 0 ? culprit : idle.after], series);
    // Whoever reads of launch latency is to know that there is a graph already.
    const bool graph =
        idle.cause == blame::Cause::kLaunchLatency && series_.LaunchesGraph(idle.after);
    if (culprit == 0 && !graph) series.api = 0;
    series.before_line = series_[idle.before].line_site;
    series.before_function = series_[idle.before].function_site;
    series.after_line = series_[idle.after].line_site;
    series.after_function = series_[idle.after].function_site;
  }
  return it->second = series_.Intern(series);
}

uint32_t DerivedSeries::OfCoverage(DeviceId device) {
  return series_.Intern({.type = EventType::kCoverage, .shape = Number(device)});
}

uint32_t DerivedSeries::OfSyncCost(uint32_t sync) {
  auto [it, fresh] =
      known_.try_emplace(Key{EventType::kSyncCost, DeviceId{}, sync, 0, 0});
  if (!fresh) return it->second;
  Series series{.type = EventType::kSyncCost};
  TakeCulprit(series_[sync], series);
  return it->second = series_.Intern(series);
}

uint32_t DerivedSeries::OfSample(uint32_t idle, uint32_t sample) {
  auto [it, fresh] =
      known_.try_emplace(Key{EventType::kGapSample, DeviceId{}, idle, sample, 0});
  if (!fresh) return it->second;
  const Series& from = series_[sample];
  Series series{.type = EventType::kGapSample, .variant = from.variant, .shape = idle};
  if (!series_.full()) {
    series.python_stack = from.python_stack;
    series.line_site = from.line_site;
    series.function_site = from.function_site;
  }
  return it->second = series_.Intern(series);
}

uint32_t DerivedSeries::OfSubmission(const blame::Submission& submission) {
  const blame::Operation& operation = submission.operation;
  auto [it, fresh] =
      known_.try_emplace(Key{EventType::kSubmission, DeviceId{}, operation.series,
                             submission.launch, submission.call});
  if (!fresh) return it->second;
  const Series& ran = series_[operation.series];
  Series series{.type = EventType::kSubmission,
                .variant = static_cast<uint8_t>(operation.kind)};
  if (operation.kind == blame::OperationKind::kKernel) {
    series.shape = gpu_.KernelName(aggregate::KernelOf(ran));
  }
  // By name and line; neither shape nor stream, of which there may be very many.
  if (!series_.full()) {
    TakeCulprit(series_[submission.launch != 0 ? submission.launch : submission.call],
                series);
  }
  return it->second = series_.Intern(series);
}

uint32_t DerivedSeries::OfRegion(const ThreadRegions::Found& found) {
  const Key key{found.sample ? EventType::kRegionSample : EventType::kRegionGap,
                DeviceId{}, found.series, found.stack, 0};
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  if (series_.full()) return 0;
  return known_[key] = series_.Intern(
             {.type = key.type, .native_stack = found.stack, .shape = found.series});
}

}  // namespace lull::collector
