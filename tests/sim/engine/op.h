// One operation of a device: what was asked for (OpSpec) and what became of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace lull::sim {

struct Exchange;
struct Function;
struct TruthRecord;

// Values are part of the ground-truth log's format (truth.py). Append only.
enum class OpKind : uint16_t {
  kKernel = 1,
  kCopy = 2,
  kMemset = 3,
  kEventRecord = 4,
  kEventWait = 5,
  kHostFunction = 6,
  kMarker = 7,  // joins dependencies; takes no time
};

// cudaMemcpyKind.
enum class CopyKind : uint8_t { kH2H = 0, kH2D = 1, kD2H = 2, kD2D = 3 };

// What a stream is asked to do. A value: a graph keeps it and submits copies.
struct OpSpec {
  OpKind kind = OpKind::kMarker;
  CopyKind copy = CopyKind::kD2D;
  bool pageable = false;       // copies: the host side is not pinned
  bool asynchronous = false;   // copies and memsets: an ...Async call
  int64_t source_device = -1;  // copies between devices; -1: its own
  uint64_t bytes = 0;
  const Function* function = nullptr;  // kernels
  uint64_t handle = 0;                 // event, host function, destination
  uint32_t value = 0;                  // memset
  uint32_t grid = 0, block = 0;        // kernels: number of blocks, threads in each
  uint32_t shape[6] = {};              // kernels: grid, then block, in x, y, z
  uint32_t shared = 0;                 // kernels: dynamic shared memory
  int64_t duration_ns = -1;            // -1: decided by the configuration at submission
  std::function<void()> effect;        // bytes to move, once it is scheduled
  std::function<void()> host_function;
  const Exchange* exchange = nullptr;  // kernels that end with those of other processes
};

inline constexpr int64_t kUnscheduled = -1;

struct Op {
  OpSpec spec;
  uint32_t device = 0;
  uint32_t tid = 0;      // thread that submitted it
  uint64_t context = 0;  // ids, not handles: handles are reused
  uint64_t stream = 0;
  uint64_t correlation = 0;  // of the outermost API call that submitted it
  uint64_t graph = 0;        // id of the executable graph, or 0
  uint64_t graph_node = 0;   // id of the node in it, or 0
  bool graph_end = false;    // the marker after its last node
  int64_t submit_ns = 0;     // when the device learned of it
  int64_t ready_ns = 0;      // latest of submission + latency and dependencies
  int64_t start_ns = 0;

  // kUnscheduled while a host function before it has not ended, or processes that it
  // exchanges with have not come. Written under the engine's lock; `scheduled` is the
  // futex that announces it once it is recorded.
  std::atomic<int64_t> end_ns{kUnscheduled};
  std::atomic<uint32_t> scheduled{0};

  int waiting_for = 0;                          // dependencies without an end
  std::vector<std::shared_ptr<Op>> dependents;  // operations that count this one
  TruthRecord* exchange_record = nullptr;       // completed when the exchange ends

  bool done(int64_t now) const {
    if (scheduled.load(std::memory_order_acquire) == 0) return false;
    return end_ns.load(std::memory_order_acquire) <= now;
  }
};

using OpPtr = std::shared_ptr<Op>;

}  // namespace lull::sim
