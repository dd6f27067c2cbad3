// The driver's own thread that runs host functions (cudaLaunchHostFunc), each no
// earlier than its time. Created with the first of them.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "tests/sim/engine/op.h"

namespace lull::sim {

class HostExecutor {
 public:
  // Called on the executor's thread, without any lock.
  using Finished = std::function<void(const OpPtr&, int64_t start_ns, int64_t end_ns)>;

  explicit HostExecutor(Finished finished) : finished_(std::move(finished)) {}

  void run(const OpPtr& op);

 private:
  [[noreturn]] void loop();
  OpPtr next();

  Finished finished_;
  std::mutex mutex_;
  std::vector<OpPtr> waiting_;
  uint32_t changes_ = 0;  // futex: counts what was added
  bool started_ = false;
};

}  // namespace lull::sim
