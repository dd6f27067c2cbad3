// What the device of a rank did, as far as it tells who waited for whom: when kernels
// of communication ran, what else did, and why it was idle. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/aggregate/event.h"
#include "daemon/aggregate/series.h"

namespace lull::query {

// Times are those of the rank's host.
struct DeviceStretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t series = 0;
  uint32_t tid = 0;  // of idle time: the thread that it is judged by
};

class DeviceRank {
 public:
  // In any order. `communicates`: of a kernel, by its name.
  void Add(const aggregate::Event& event, const aggregate::Series& series,
           bool communicates);
  // To be called once, when all are added.
  void Finish();

  // Kernels that communicate, in the order of their starts.
  const std::vector<DeviceStretch>& communication() const { return communication_; }
  // Time in which one ran, and the part of it in which none that computes did.
  uint64_t communication_ns() const { return communication_ns_; }
  uint64_t exposed_ns() const { return exposed_ns_; }
  const std::vector<DeviceStretch>& idle() const { return idle_; }
  // The last sync of the thread that is judged that began before the end of the idle
  // time; nullptr: none did.
  const DeviceStretch* SyncOf(const DeviceStretch& idle) const;
  // Kernels that compute: stretches that touch are one.
  const std::vector<DeviceStretch>& computing() const { return computing_; }
  // Time in which the device may have waited for other ranks and nobody knows: what
  // lies between windows of tracing.
  const std::vector<DeviceStretch>& untraced() const { return untraced_; }
  const std::vector<DeviceStretch>& traced() const { return traced_; }
  bool IsTraced(uint64_t time_ns) const;
  // The thread that the device waited for most, while it was idle; 0: none.
  uint32_t idle_thread() const { return idle_thread_; }
  // More than one device has work of this process: not told apart here.
  bool several_devices() const { return several_; }

 private:
  void FindUntraced();
  void MeasureCommunication();

  std::vector<DeviceStretch> traced_;
  std::vector<DeviceStretch> communication_, idle_, computing_, untraced_;
  std::map<uint32_t, std::vector<DeviceStretch>> syncs_;  // by thread
  uint64_t communication_ns_ = 0, exposed_ns_ = 0;
  std::map<uint32_t, uint64_t> idle_ns_;  // by thread
  uint32_t idle_thread_ = 0;
  bool several_ = false;
  int64_t device_ = -1;
};

}  // namespace lull::query
