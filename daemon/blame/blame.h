// Why was the GPU idle? One engine per process of a job: operations, API calls and
// host events go in as they arrive; idle time with its cause, the cost of each sync
// and the launching call of each operation come out, once nothing can change them.
//
// Pure: no clock, no store, no message. Times are CLOCK_MONOTONIC in ns. Not
// thread-safe. docs/blame.md holds the rules; the tests hold the rules and this.
//
//   a gap [a, b) of a device: nothing runs; the operation X that starts at b was
//   submitted by call L, which thread T entered at l
//
//        a            l             b
//   -----+------------+-------------+-----
//   busy |  host part | device part | X
//
// Order of input: any, as long as it comes before Advance() passes its time: the end of
// what has one. Host events and run delays go by `host_ns`, all else by `gpu_ns`. Then
// nothing depends on the order or on how often Advance is called. The exception are
// operations and host events that take longer than `patience_ns`: where time beside
// them had to be judged meanwhile, they are late for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "daemon/base/ids.h"

namespace lull::blame {

// Values equal those of lull.v1.GapCause.
enum class Cause : uint8_t {
  kUnknown = 0,
  kDependency = 1,
  kLaunchLatency = 2,
  kGc = 3,
  kAllocator = 4,
  kDataWait = 5,
  kGilWait = 6,
  kHostWait = 7,
  kSync = 8,
  kRunQueue = 9,
  kLaunchBound = 10,
  kHostCode = 11,
  kLaunchCall = 12,
};
inline constexpr size_t kCauseCount = 13;

enum class OperationKind : uint8_t { kKernel, kCopy, kMemset, kGraph };

// What ran on a device. `series` is the caller's own name for it, handed back.
struct Operation {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  CorrelationId correlation{};
  DeviceId device{};
  ContextId context{};
  StreamId stream{};
  uint32_t series = 0;
  OperationKind kind = OperationKind::kKernel;
};

// A runtime or driver call, as CUPTI saw it on the launching thread. Those that submit
// nothing need not be given.
struct ApiCall {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  ThreadId tid{};
  CorrelationId correlation{};
  uint32_t series = 0;
};

// A stream was told to wait for an event (by the call with this correlation id).
struct StreamWait {
  uint64_t time_ns = 0;
  ContextId context{};
  StreamId stream{};
  CorrelationId correlation{};
};

enum class HostKind : uint8_t {
  kLaunch,     // a hooked launch, copy or memset that did not block
  kSync,       // a hooked call that may block until the device is done
  kAllocator,  // cudaMalloc, cudaFree and the like, and tensor allocations that took
               // time
  kGc,
  kDataWait,
  kDataScope,  // all of a DataLoader's __next__, whatever it does
  kGilWait,
  kHandover,  // for another thread: a lock, a condition
  kHostWait,  // any other wait: descriptor, sleep, process
};

// A stretch of a host thread. Those of one thread nest or are disjoint.
struct HostEvent {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  ThreadId tid{};
  uint32_t series = 0;  // the caller's own name for what it is and where, never 0
  HostKind kind = HostKind::kLaunch;
};

// Thread `tid` was ready and had to wait for a processor for `delay_ns`, somewhere in
// the span.
struct RunDelay {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  ThreadId tid{};
  uint64_t delay_ns = 0;
};

// A part of a gap. Parts do not overlap and cover all idle time of traced time.
struct Idle {
  DeviceId device{};
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  Cause cause = Cause::kUnknown;
  uint32_t culprit = 0;  // series of the host event to blame; 0: the code itself
  uint32_t before = 0;  // series of the launch before it, of the thread it is judged by
  uint32_t after = 0;   // series of L: its host event, else its API call
  ThreadId tid{};       // of that thread; 0 = unknown
  // Where T and P wait for each other, `culprit` is T's wait and this is P's: nobody
  // may know where T is.
  uint32_t other_wait = 0;
};

// A sync that lies wholly in traced time.
struct SyncCost {
  HostEvent sync;
  uint64_t needed_ns = 0;  // of its time: some device was busy
};

// An operation and the call that submitted it, as far as known.
struct Submission {
  Operation operation;
  uint32_t launch = 0;  // series of the hooked call, 0 = not hooked or lost
  uint32_t call = 0;    // series of the API call, 0 = lost
  ThreadId tid{};
};

// Traced time of one device, and how much of that time it was busy; in pieces that
// follow each other.
struct Coverage {
  DeviceId device{};
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t busy_ns = 0;    // union of all operations
  uint64_t kernel_ns = 0;  // union of kernels and graphs
};

// Called during Advance and Finish. What is told is told once and for good.
//
// Of each device, output goes forward together: once its Coverage has been told up to
// t, so have all its idle parts before t and the submissions of all its operations that
// start before t, and none from t on. A SyncCost is told once that holds up to the
// sync's end of every device. So a caller whose engine is gone can feed a new one with
// the same events and drop what was told before.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void OnIdle(const Idle& idle) = 0;
  virtual void OnSync(const SyncCost& cost) = 0;
  virtual void OnSubmission(const Submission& submission) = 0;
  virtual void OnCoverage(const Coverage& coverage) = 0;
};

struct Options {
  uint64_t launch_bound_ns =
      100'000;                      // a launch this soon after the last is launch-bound
  uint64_t slow_call_ns = 100'000;  // what a launch takes of idle time is its own from
                                    // here on
  // A mark says nothing about what still goes on: an operation that has started may lie
  // in a gap. So gaps are judged when both marks are so far beyond them.
  uint64_t patience_ns = 5'000'000'000;
  // An operation starts at most so long after its call, or its call is not known.
  uint64_t queue_ns = 20'000'000'000;
  // Only the end of a longer gap is judged; the time before it is unknown.
  uint64_t longest_gap_ns = 120'000'000'000;
  uint64_t coverage_ns = 1'000'000'000;  // Coverage comes in pieces cut at multiples
  uint64_t clock_tolerance_ns = 5'000;   // between CUPTI's calls and our hooks
  size_t max_pending = 2'000'000;        // events held; beyond it the oldest are judged
                                         // early, and what they lack is unknown
};

struct Counters {
  uint64_t late_operations = 0;  // came after their time had been judged: left out
  uint64_t late_host_events = 0;
  uint64_t overflows = 0;  // times that max_pending was hit
};

class Engine {
 public:
  Engine(Options options, Sink& sink);
  ~Engine();

  void Add(const Operation& operation);
  void Add(const ApiCall& call);
  void Add(const StreamWait& wait);
  void Add(const HostEvent& event);
  void Add(const RunDelay& delay);

  // Traced time: [Trace, Untrace). Idle time exists only there. A device is traced from
  // the first Trace before its first operation on; an unseen device has no idle time.
  void Trace(uint64_t time_ns);
  void Untrace(uint64_t time_ns);

  // Records of the span are missing: idle time in it is unknown.
  void Lost(uint64_t start_ns, uint64_t end_ns);

  // No host event that ends before `host_ns`, and no operation that ends before
  // `gpu_ns`, will come any more. (A host event comes when it ends: a long sync starts
  // far before host_ns and is not late.) Judges what it can.
  void Advance(uint64_t host_ns, uint64_t gpu_ns);
  // Nothing more will come at all. Tracing that was never ended ends with the last
  // operation.
  void Finish();

  const Counters& counters() const;
  size_t pending() const;  // events held

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lull::blame
