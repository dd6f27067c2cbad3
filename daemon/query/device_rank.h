// What the device of a rank did, as far as it tells who waited for whom: which kernel
// is which collective of NCCL, what else ran, and why it was idle. Pure.
//
// A call of NCCL knows its communicator and its number on it; what it submits is known
// by the correlation id of the call that CUPTI saw inside it, on the same thread.
// Kernels of communication that belong to no call, or may belong to several, stay
// unclear.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/aggregate/event.h"
#include "daemon/aggregate/series.h"

namespace lull::query {

// Times are those of the rank's host.
struct DeviceCollective {
  uint64_t start_ns = 0;  // of the kernels
  uint64_t end_ns = 0;
  uint64_t communicator = 0;  // never 0
  uint32_t number = 0;
  uint32_t members = 0;
  uint32_t kib = 0;
  uint32_t series = 0;  // of the call
};

struct DeviceStretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t series = 0;  // of an idle stretch; 0: see the list that it is in
};

class DeviceRank {
 public:
  // In any order. `communicates`: of a kernel, by its name.
  void Add(const aggregate::Event& event, const aggregate::Series& series,
           bool communicates);
  // To be called once, when all are added.
  void Finish();

  const std::vector<DeviceCollective>& collectives() const { return collectives_; }
  // All kernels that communicate, whatever is known of them, in the order of their
  // starts.
  const std::vector<DeviceStretch>& communication() const { return communication_; }
  // Time in which one ran, and the part of it in which none that computes did.
  uint64_t communication_ns() const { return communication_ns_; }
  uint64_t exposed_ns() const { return exposed_ns_; }
  const std::vector<DeviceStretch>& idle() const { return idle_; }
  // Kernels that compute: stretches that touch are one.
  const std::vector<DeviceStretch>& computing() const { return computing_; }
  // Time in which the device may have waited for other ranks and nobody knows: kernels
  // that are unclear, and what lies between windows of tracing.
  const std::vector<DeviceStretch>& unclear() const { return unclear_; }
  bool IsTraced(uint64_t time_ns) const;
  // The thread that the device waited for most, while it was idle; 0: none.
  uint32_t idle_thread() const { return idle_thread_; }
  // More than one device has work of this process: not told apart here.
  bool several_devices() const { return several_; }

 private:
  struct Kernel {
    DeviceStretch when;
    uint32_t correlation = 0;
  };
  struct Api {
    uint32_t correlation = 0;
    uint32_t tid = 0;
    uint64_t start_ns = 0;
  };
  struct Call {
    uint32_t tid = 0;
    uint64_t end_ns = 0;
    DeviceCollective what;  // its start_ns is that of the call
    bool alone = true;      // no other piece of work was submitted by the same call
    uint64_t kernel_start_ns = 0, kernel_end_ns = 0;  // 0: none was found
  };

  void SortCalls();
  Call* CallOf(const Kernel& kernel);
  void Match();
  void FindUntraced();
  void MeasureCommunication();

  std::vector<Kernel> kernels_;
  std::vector<Api> apis_;
  std::vector<Call> calls_;
  std::vector<DeviceStretch> traced_;
  std::vector<DeviceCollective> collectives_;
  std::vector<DeviceStretch> communication_, idle_, computing_, unclear_;
  uint64_t communication_ns_ = 0, exposed_ns_ = 0;
  std::map<uint32_t, uint64_t> idle_ns_;  // by thread
  uint32_t idle_thread_ = 0;
  bool several_ = false;
  int64_t device_ = -1;
};

}  // namespace lull::query
