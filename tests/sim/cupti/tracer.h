// Turns what the simulated driver does into activity records.
//
// An operation becomes a record once it has ended, so records of a device lie in the
// order of completion. Ended operations are collected when an API call returns, at a
// flush, and by the worker thread. One tracer in a process and copy of the library;
// a fork child starts with a fresh one. Never destroyed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <queue>
#include <unordered_map>
#include <vector>

#include "tests/sim/cupti/link.h"
#include "tests/sim/cupti/output.h"
#include "tests/sim/cupti/records.h"
#include "tests/sim/cupti/trace_clock.h"
#include "tests/sim/engine/observer.h"

namespace lull::sim::cupti {

inline constexpr size_t kMaxCbid = 2048;

class Tracer {
 public:
  static Tracer& get();

  Output& output() { return output_; }

  // With the output's mutex held: the clock of the records.
  TraceClock& clock() { return clock_; }

  // CUptiResult. Enabling begins to observe the driver.
  int enable(uint32_t kind);
  int disable(uint32_t kind);
  bool enabled(uint32_t kind) const;
  // Records of the devices and contexts that exist.
  void dump(uint32_t kind);
  // One function of a domain (kRuntime, kDriver).
  int enable_api(uint32_t domain, uint32_t cbid, bool on);

  // Loads the driver; kUnknown if there is none.
  int attach();
  // Observes the driver while anything is to be told to anybody, and then alone: to a
  // program nothing is left of CUPTI but what `cupti_stays_ns` says. False: it cannot.
  bool observe();
  // cuptiFinalize: nothing is enabled, undelivered buffers are forgotten.
  void finalize();

  int flush(bool forced);

  std::atomic<bool> system_thread_ids{false};
  std::atomic<bool> all_sync_records{true};
  std::atomic<bool> event_timestamps{false};

  // From the observer.
  void on_api_end(const ApiEvent& event);
  void on_op(const OpEvent& op);
  void on_sync(const SyncEvent& event);
  void on_stall(const StallEvent& event);
  void on_context(uint64_t context, uint32_t device);
  Charge charge(const ApiEvent& event) const;

 private:
  struct Later {
    bool operator()(const OpEvent& a, const OpEvent& b) const {
      return a.end_ns > b.end_ns;
    }
  };
  struct GraphRun {
    int64_t start_ns = INT64_MAX, end_ns = 0;
  };

  Tracer();
  // Whether this function's calls are recorded.
  bool traces(const ApiEvent& event) const;
  void set_apis(uint32_t kind, bool on);
  bool observe_locked();  // with pending_mutex_
  bool anything_enabled() const;
  bool wants_to_know() const;  // with pending_mutex_
  void ask_what_stays();
  void push(const OpEvent& op);  // with pending_mutex_
  bool trace_graph(const OpEvent& op);

  // With the output's mutex held.
  void collect(bool forced);
  void write_api(const ApiEvent& event);
  void write_external(uint32_t correlation);
  void write_op(const OpEvent& op, bool incomplete);
  void write_kernel(const OpEvent& op, uint64_t start, uint64_t end);
  void write_copy(const OpEvent& op, uint64_t start, uint64_t end);
  void write_memset(const OpEvent& op, uint64_t start, uint64_t end);
  void write_graph(const OpEvent& op, uint64_t start, uint64_t end);
  void write_event(const OpEvent& op);
  void write_overhead(uint32_t overhead, uint64_t correlation, int64_t start_ns,
                      int64_t end_ns);
  void write_context(uint32_t context, uint32_t device);
  void write_device(uint32_t device);
  template <typename Record>
  void write(uint32_t lane, const Record& record);
  // Spoils every n-th device record where the environment asks for it.
  template <typename Record>
  void spoil(Record* record);

  const uint32_t version_;
  Output output_;
  TraceClock clock_;
  std::atomic<bool> kinds_[kKinds] = {};
  std::atomic<bool> apis_[2] = {};  // any function of the runtime, of the driver
  // Changed with the output's mutex.
  std::array<std::atomic<bool>, kMaxCbid> cbids_[2] = {};
  std::atomic<bool> tracing_{false};  // any of these
  std::atomic<bool> stays_{false};    // it was on, and nobody has finalised it
  std::atomic<bool> stays_costly_{false};
  int64_t device_records_ = 0;
  int64_t launches_ = 0;

  std::mutex pending_mutex_;  // after the engine's lock or the output's mutex
  std::priority_queue<OpEvent, std::vector<OpEvent>, Later> pending_;
  std::unordered_map<uint64_t, GraphRun> graphs_;        // by correlation
  // The newest graph when GRAPH_TRACE was enabled.
  std::atomic<uint64_t> graphs_from_before_{0};
  std::vector<std::pair<uint32_t, uint32_t>> contexts_;  // new ones: id, device
};

// The calling thread's external ids, by CUpti_ExternalCorrelationKind.
inline constexpr uint32_t kExternalKinds = 6;
std::vector<uint64_t>* external_ids(uint32_t kind);

// How records name the calling thread.
uint32_t record_thread(bool system_id);

}  // namespace lull::sim::cupti
