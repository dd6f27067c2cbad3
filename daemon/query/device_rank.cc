#include "daemon/query/device_rank.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "daemon/aggregate/event_views.h"

namespace lull::query {
namespace {

using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

DeviceStretch StretchOf(const Event& event) {
  return {event.start_ns, event.start_ns + event.duration_ns, event.series};
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
    case EventType::kCollective: {
      const CollectiveView call{event};
      Call& added = calls_.emplace_back();
      added.tid = event.tid;
      added.end_ns = event.start_ns + event.duration_ns;
      added.what.start_ns = event.start_ns;
      added.what.communicator = call.communicator();
      added.what.number = call.number();
      added.what.members = call.members();
      added.what.kib = call.kib();
      added.what.series = event.series;
      return;
    }
    case EventType::kApiCall: {
      const ApiCallView call{event};
      apis_.push_back(
          {Number(call.correlation()), Number(call.caller()), event.start_ns});
      return;
    }
    case EventType::kGpuKernel:
      if (!aggregate::IsTraced(series)) return;
      if (communicates) {
        communication_.push_back(StretchOf(event));
        kernels_.push_back(
            {StretchOf(event), Number(OperationView{event}.correlation())});
      } else {
        computing_.push_back(StretchOf(event));
      }
      return;
    case EventType::kIdle:
      idle_.push_back(StretchOf(event));
      idle_ns_[event.tid] += event.duration_ns;
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
  SortCalls();
  Match();
  FindUntraced();
  Join(unclear_);
  MeasureCommunication();
  const auto most = std::max_element(
      idle_ns_.begin(), idle_ns_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  idle_thread_ = most == idle_ns_.end() ? 0 : most->first;
  apis_.clear();
  kernels_.clear();
  calls_.clear();
}

bool DeviceRank::IsTraced(uint64_t time_ns) const {
  const auto after = std::upper_bound(
      traced_.begin(), traced_.end(), time_ns,
      [](uint64_t ns, const DeviceStretch& one) { return ns < one.start_ns; });
  return after != traced_.begin() && time_ns < std::prev(after)->end_ns;
}

// ncclGroupEnd is one call for each communicator that the group had.
void DeviceRank::SortCalls() {
  std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
    return std::tie(a.tid, a.what.start_ns) < std::tie(b.tid, b.what.start_ns);
  });
  for (size_t i = 1; i < calls_.size(); ++i) {
    Call &before = calls_[i - 1], &call = calls_[i];
    if (call.tid != before.tid || call.what.start_ns >= before.end_ns) continue;
    before.alone = call.alone = false;
    call.end_ns = std::max(call.end_ns, before.end_ns);
  }
  std::sort(apis_.begin(), apis_.end(),
            [](const Api& a, const Api& b) { return a.correlation < b.correlation; });
}

DeviceRank::Call* DeviceRank::CallOf(const Kernel& kernel) {
  const auto api = std::lower_bound(
      apis_.begin(), apis_.end(), kernel.correlation,
      [](const Api& one, uint32_t wanted) { return one.correlation < wanted; });
  if (kernel.correlation == 0 || api == apis_.end() ||
      api->correlation != kernel.correlation) {
    return nullptr;
  }
  const auto after = std::upper_bound(
      calls_.begin(), calls_.end(), std::pair(api->tid, api->start_ns),
      [](const std::pair<uint32_t, uint64_t>& wanted, const Call& call) {
        return wanted < std::pair(call.tid, call.what.start_ns);
      });
  if (after == calls_.begin()) return nullptr;
  Call& call = *std::prev(after);
  const bool within = call.tid == api->tid && api->start_ns <= call.end_ns;
  return within && call.alone && call.what.communicator != 0 ? &call : nullptr;
}

// A call may have several kernels: then it is from the first one's start to the last
// one's end.
void DeviceRank::Match() {
  for (const Kernel& kernel : kernels_) {
    Call* call = CallOf(kernel);
    if (call == nullptr) {
      unclear_.push_back({kernel.when.start_ns, kernel.when.end_ns, 0});
      continue;
    }
    const bool first = call->kernel_end_ns == 0;
    call->kernel_start_ns = first
                                ? kernel.when.start_ns
                                : std::min(call->kernel_start_ns, kernel.when.start_ns);
    call->kernel_end_ns = std::max(call->kernel_end_ns, kernel.when.end_ns);
  }
  for (const Call& call : calls_) {
    if (call.kernel_end_ns == 0) continue;
    DeviceCollective& found = collectives_.emplace_back(call.what);
    found.start_ns = call.kernel_start_ns;
    found.end_ns = call.kernel_end_ns;
  }
  std::sort(collectives_.begin(), collectives_.end(),
            [](const DeviceCollective& a, const DeviceCollective& b) {
              return std::tie(a.start_ns, a.end_ns) < std::tie(b.start_ns, b.end_ns);
            });
}

void DeviceRank::FindUntraced() {
  for (size_t i = 1; i < traced_.size(); ++i) {
    unclear_.push_back({traced_[i - 1].end_ns, traced_[i].start_ns, 0});
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
