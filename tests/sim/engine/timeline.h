// When every operation starts and ends.
//
// Durations are known when an operation is submitted, so its times are computed
// at that moment: start is the latest of submission + latency, the ends of its
// dependencies, and the next free slot of its resource (kernel slots, one copy
// engine per direction). Only host functions and exchanges with other processes have
// no known end; what depends on them is scheduled when that is told. Nothing here reads
// a clock or blocks, wait() apart. The caller holds the engine's lock for all other
// calls.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tests/sim/engine/config.h"
#include "tests/sim/engine/op.h"
#include "tests/sim/engine/servers.h"

namespace lull::sim {

class Timeline {
 public:
  struct Listener {
    std::function<void(const Op&)> scheduled;         // start and end are known
    std::function<void(const OpPtr&)> host_function;  // run it at ready_ns
    // It starts at ready_ns, on no slot; when it ends, or kUnscheduled: finish() tells.
    std::function<int64_t(const OpPtr&)> exchange;
  };

  Timeline(const Config& config, Listener listener);

  // Needs op->submit_ns and op->spec.duration_ns. Null dependencies are ignored.
  void submit(const OpPtr& op, std::span<const OpPtr> dependencies);

  // A host function returned, or an exchange was over, at `end_ns`.
  void finish(const OpPtr& op, int64_t start_ns, int64_t end_ns);

  // Blocks the calling thread until `op` has ended. Returns the time blocked, 0
  // if it had ended already. Without the engine's lock.
  static int64_t wait(const OpPtr& op);

 private:
  struct Resources {
    explicit Resources(const Config& config)
        : kernels(config.concurrent_kernels), h2d(1), d2h(1) {}
    Servers kernels, h2d, d2h;
  };

  void schedule_ready(OpPtr op);
  void place(Op* op);
  void settle(Op* op, int64_t start_ns, int64_t end_ns);
  Servers* resource(const Op& op);

  const Config& config_;
  Listener listener_;
  std::vector<Resources> devices_;
};

}  // namespace lull::sim
