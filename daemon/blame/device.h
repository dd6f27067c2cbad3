// What the engine knows about one device: since when it is idle, who launched what
// ended last, and all that is judged but not yet passed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "daemon/base/settled.h"
#include "daemon/blame/blame.h"
#include "daemon/blame/operation_order.h"
#include "daemon/blame/run_queue.h"
#include "daemon/blame/union.h"

namespace lull::blame {

struct TracedStretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // kNever: it goes on
};

class Device {
 public:
  Device(DeviceId id, Sink& sink) : id(id), sink_(sink) {}

  const DeviceId id;
  bool used = false;  // an operation took time
  // It is idle since then at the earliest: tracing started, or what came before was
  // given up.
  uint64_t floor_ns = 0;
  bool floor_torn = false;  // given up: what came before it is not known any more
  uint64_t busy_end_ns = 0;
  // The operation that ended at busy_end_ns; if there are several, the one submitted
  // last.
  bool ender_known = false;
  ThreadId ender_tid{};
  uint64_t ender_submit_ns = 0;
  int64_t ends_gap = -1;  // of the operations being passed; -1 = none

  uint64_t idle_since() const {
    return busy_end_ns > floor_ns ? busy_end_ns : floor_ns;
  }
  bool torn() const { return floor_torn && floor_ns > busy_end_ns; }

  void StartTracing(uint64_t time_ns);
  void EndTracing(uint64_t time_ns) { traced_.back().end_ns = time_ns; }
  void AddBusy(uint64_t start_ns, uint64_t end_ns, bool kernel);
  void AddPart(const Part& part) { run_queue_.Append(part); }
  void AddSubmission(const Submission& submission) { submissions_.Add(submission); }

  // Tells what is final: all before `judged_ns` is judged, and the run delays that
  // ended by then are in. Coverage, idle time and submissions go forward together, in
  // steps of `unit_ns`; with `all`, up to judged_ns itself.
  void Tell(uint64_t judged_ns, const RunDelays& delays, uint64_t unit_ns, bool all);
  // Told up to here, or there is nothing to tell before.
  uint64_t told_ns() const;
  uint64_t delays_ns() const { return delays_ns_; }

  size_t size() const {
    return busy_.size() + kernels_.size() + run_queue_.size() + submissions_.size();
  }

 private:
  struct Order {
    bool operator()(const Submission& a, const Submission& b) const {
      return OperationOrder()(a.operation, b.operation);
    }
  };
  uint64_t ApplyDelays(uint64_t until_ns, const RunDelays& delays);
  void TellCoverage(uint64_t until_ns, uint64_t unit_ns, bool all);
  void TellPiece(uint64_t* from_ns, uint64_t end_ns);
  void TellBefore(uint64_t time_ns);

  Sink& sink_;
  std::deque<TracedStretch> traced_;  // not yet told to the end
  uint64_t covered_ns_ = 0;           // Coverage is told up to here
  Union busy_;
  Union kernels_;
  RunQueue run_queue_;
  uint64_t delays_ns_ = 0;  // run delays that ended by then are applied
  Settled<Submission, Order> submissions_;
};

}  // namespace lull::blame
