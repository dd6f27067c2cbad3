// What a tracer on top of the simulated driver is told: calls, operations, waits.
// libcupti.so.{12,13} of tests/sim/cupti are the only users.
//
// Plain data across the library's border. An observer changes no entry of the
// ground-truth log, and time only by what it computes itself and through `charges`; one
// that wants to know nothing just now takes itself away. Callbacks run on the thread
// that does the thing, without the engine's lock unless noted.
#pragma once

#include <cstdint>

namespace lull::sim {

struct Op;

// One call of the driver or the runtime API.
struct ApiEvent {
  const char* name;
  bool runtime;          // of libcudart; else of libcuda
  bool outermost;        // made by the program, not by another call
  uint64_t correlation;  // of the outermost call
  uint64_t context;      // id of the thread's current context, or 0
  int64_t start_ns;      // CLOCK_MONOTONIC, as in the ground-truth log
  int64_t end_ns;        // 0 when it begins
  int result;
};

// One operation whose start and end are settled; `end_ns` may lie in the future.
struct OpEvent {
  uint16_t kind;  // OpKind
  uint8_t copy;   // CopyKind
  bool pageable;
  bool asynchronous;
  bool graph_end;  // the marker after the last node of a graph launch
  uint32_t device, source_device;
  uint32_t tid;
  uint64_t context, stream, correlation;
  uint64_t graph;  // id of the executable graph, or 0
  uint64_t graph_node;
  uint64_t handle;  // event: its id
  uint64_t bytes;
  uint32_t value;     // memset
  const char* name;   // kernel; lives as long as the process
  uint32_t shape[6];  // kernel: grid, block
  uint32_t shared;
  int64_t submit_ns, start_ns, end_ns;
};

// Values of CUpti_ActivitySynchronizationType.
enum class SyncKind : uint32_t {
  kEvent = 1,
  kStreamWaitEvent = 2,
  kStream = 3,
  kContext = 4,
};

// A call that waits, or asks, or makes a stream wait.
struct SyncEvent {
  SyncKind kind;
  bool query;
  int result;
  uint64_t context, stream, event;
  uint64_t event_record;  // correlation of the call that recorded the event
  uint64_t correlation;
  int64_t start_ns, end_ns;
};

// A launch that found its stream's queue full.
struct StallEvent {
  uint64_t context, stream, correlation;
  int64_t start_ns, end_ns;
};

// kTraced: `cupti_launch_ns`. kStays: `cupti_stays_ns`, what tracing left behind.
enum class Charge : uint32_t { kNothing, kStays, kTraced };

struct Observer {
  void (*api_begin)(const ApiEvent*);
  void (*api_end)(const ApiEvent*);
  void (*op)(const OpEvent*);  // with the engine's lock held
  void (*sync)(const SyncEvent*);
  void (*stall)(const StallEvent*);
  void (*context)(uint64_t context, uint32_t device);  // created; with the lock held
  // What a call of the program's costs it more. Before `api_end` of it.
  Charge (*charges)(const ApiEvent*);
};

// Observers stay valid for the life of the process. False: no place is left.
bool add_observer(const Observer* observer);
void remove_observer(const Observer* observer);

// True if anybody looks: the price of an observer that is not there.
bool observed();

// For each observer, through the member function pointer `callback`.
void notify(void (*Observer::*callback)(const ApiEvent*), const ApiEvent& event);
void notify(const SyncEvent& event);
void notify(const StallEvent& event);
void notify_op(const Op& op);
void notify_context(uint64_t context, uint32_t device);
Charge observers_charge(const ApiEvent& event);  // the dearest

// Reports a synchronisation from its construction to its end. Fill in what becomes
// known on the way.
class SyncScope {
 public:
  explicit SyncScope(SyncKind kind, bool query = false);
  ~SyncScope();
  SyncScope(const SyncScope&) = delete;
  SyncScope& operator=(const SyncScope&) = delete;

  int done(int result) { return event.result = result; }

  SyncEvent event{};

 private:
  bool observed_;
};

}  // namespace lull::sim
