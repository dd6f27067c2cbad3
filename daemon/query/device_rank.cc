#include "daemon/query/device_rank.h"

#include <algorithm>
#include <tuple>

#include "daemon/aggregate/event_views.h"

namespace lull::query {
namespace {

using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

DeviceStretch StretchOf(const Event& event) {
  return {event.start_ns, event.start_ns + event.duration_ns, event.series, event.tid};
}

bool StartsBefore(const DeviceStretch& a, const DeviceStretch& b) {
  return std::tie(a.start_ns, a.end_ns) < std::tie(b.start_ns, b.end_ns);
}

// What touches or overlaps becomes one.
void Join(std::vector<DeviceStretch>& stretches) {
  std::sort(stretches.begin(), stretches.end(), StartsBefore);
  size_t kept = 0;
  for (const DeviceStretch& one : stretches) {
    if (kept > 0 && one.start_ns <= stretches[kept - 1].end_ns) {
      uint64_t& end_ns = stretches[kept - 1].end_ns;
      end_ns = std::max(end_ns, one.end_ns);
    } else {
      stretches[kept++] = one;
    }
  }
  stretches.resize(kept);
}

}  // namespace

void DeviceRank::Add(const Event& event, const Series& series, bool communicates) {
  switch (series.type) {
    case EventType::kGpuKernel:
      if (!aggregate::IsTraced(series)) return;
      (communicates ? communication_ : computing_).push_back(StretchOf(event));
      return;
    case EventType::kIdle:
      idle_.push_back(StretchOf(event));
      idle_ns_[event.tid] += event.duration_ns;
      return;
    case EventType::kSync:
      syncs_[event.tid].push_back(StretchOf(event));
      return;
    case EventType::kCoverage: {
      const int64_t device = Number(aggregate::DeviceOf(series));
      several_ = several_ || (device_ >= 0 && device != device_);
      device_ = device;
      traced_.push_back(StretchOf(event));
      return;
    }
    default:
      return;
  }
}

void DeviceRank::Finish() {
  Join(traced_);
  Join(computing_);
  std::sort(idle_.begin(), idle_.end(), StartsBefore);
  FindUntraced();
  MeasureCommunication();
  const auto most = std::max_element(
      idle_ns_.begin(), idle_ns_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  idle_thread_ = most == idle_ns_.end() ? 0 : most->first;
  for (auto& [tid, syncs] : syncs_) Join(syncs);
}

const DeviceStretch* DeviceRank::SyncOf(const DeviceStretch& idle) const {
  const auto of_thread = syncs_.find(idle.tid);
  if (of_thread == syncs_.end()) return nullptr;
  const std::vector<DeviceStretch>& syncs = of_thread->second;
  const auto after = std::lower_bound(
      syncs.begin(), syncs.end(), idle.end_ns,
      [](const DeviceStretch& sync, uint64_t ns) { return sync.start_ns < ns; });
  return after == syncs.begin() ? nullptr : &*std::prev(after);
}

bool DeviceRank::IsTraced(uint64_t time_ns) const {
  const auto after = std::upper_bound(
      traced_.begin(), traced_.end(), time_ns,
      [](uint64_t ns, const DeviceStretch& one) { return ns < one.start_ns; });
  return after != traced_.begin() && time_ns < std::prev(after)->end_ns;
}

void DeviceRank::FindUntraced() {
  for (size_t i = 1; i < traced_.size(); ++i) {
    untraced_.push_back({traced_[i - 1].end_ns, traced_[i].start_ns, 0, 0});
  }
}

void DeviceRank::MeasureCommunication() {
  std::sort(communication_.begin(), communication_.end(), StartsBefore);
  std::vector<DeviceStretch> all = communication_;
  Join(all);
  for (const DeviceStretch& one : all) {
    communication_ns_ += one.end_ns - one.start_ns;
    exposed_ns_ += one.end_ns - one.start_ns;
    auto other = std::upper_bound(computing_.begin(), computing_.end(), one.start_ns,
                                  [](uint64_t ns, const DeviceStretch& computing) {
                                    return ns < computing.end_ns;
                                  });
    for (; other != computing_.end() && other->start_ns < one.end_ns; ++other) {
      exposed_ns_ -=
          std::min(other->end_ns, one.end_ns) - std::max(other->start_ns, one.start_ns);
    }
  }
}

}  // namespace lull::query
