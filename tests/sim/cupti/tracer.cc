#include "tests/sim/cupti/tracer.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "tests/sim/cupti/api.h"
#include "tests/sim/cupti/callbacks.h"
#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/link.h"
#include "tests/sim/cupti/settings.h"
#include "tests/sim/engine/clock.h"
#include "tests/sim/engine/op.h"

namespace lull::sim::cupti {
namespace {

constexpr uint32_t kSyncSeparate = 27;  // before, SYNCHRONIZATION brings CUDA_EVENT
constexpr uint32_t kPerThreadDefault = 130000;
constexpr int64_t kNever = INT64_MAX;

// A graph launch as one operation; above every OpKind.
constexpr uint16_t kGraphLaunch = 100;

std::atomic<Tracer*> g_tracer{nullptr};

// What an observed operation becomes; 0: nothing.
uint32_t record_kind(const OpEvent& op) {
  switch (static_cast<OpKind>(op.kind)) {
    case OpKind::kKernel:
      return kConcurrentKernel;
    case OpKind::kCopy:
      return kMemcpy;
    case OpKind::kMemset:
      return kMemset;
    case OpKind::kEventRecord:
      return kCudaEvent;
    default:
      return 0;
  }
}

constexpr Observer kObserver = {
    [](const ApiEvent* event) { callbacks_enter(*event); },
    [](const ApiEvent* event) {
      Tracer::get().on_api_end(*event);
      callbacks_exit(*event);
    },
    [](const OpEvent* op) { Tracer::get().on_op(*op); },
    [](const SyncEvent* event) { Tracer::get().on_sync(*event); },
    [](const StallEvent* event) { Tracer::get().on_stall(*event); },
    [](uint64_t context, uint32_t device) {
      Tracer::get().on_context(context, device);
    },
    [](const ApiEvent* event) { return Tracer::get().charge(*event); },
};

int domain_index(uint32_t kind) { return kind == kDriver ? 1 : 0; }

}  // namespace

Tracer& Tracer::get() {
  Tracer* tracer = g_tracer.load(std::memory_order_acquire);
  if (tracer != nullptr) return *tracer;
  static std::once_flag once;
  std::call_once(
      once, [] { pthread_atfork(nullptr, nullptr, [] { g_tracer.store(nullptr); }); });
  auto* fresh = new Tracer;
  if (g_tracer.compare_exchange_strong(tracer, fresh)) return *fresh;
  delete fresh;
  return *tracer;
}

Tracer::Tracer() : version_(settings().version), output_(version_) {
  output_.per_thread = version_ >= kPerThreadDefault;
}

int Tracer::attach() {
  const Driver* driver = load_driver();
  if (driver == nullptr) return kErrorUnknown;
  output_.start_worker([] {
    Tracer& tracer = Tracer::get();
    std::lock_guard lock(tracer.output_.mutex());
    tracer.collect(false);
  });
  return kSuccess;
}

bool Tracer::observe() {
  std::lock_guard lock(pending_mutex_);
  return observe_locked();
}

bool Tracer::observe_locked() {
  const Driver* driver = load_driver();
  if (driver == nullptr) return false;
  tracing_ = anything_enabled();
  if (wants_to_know()) return driver->add_observer(&kObserver) != 0;
  driver->remove_observer(&kObserver);
  return true;
}

// Without a lock: the driver takes one of its own, which comes before all of ours.
void Tracer::ask_what_stays() {
  const Driver* driver = load_driver();
  stays_costly_ = driver != nullptr && driver->stays_ns() != 0;
}

bool Tracer::anything_enabled() const {
  return apis_[0] || apis_[1] ||
         std::any_of(std::begin(kinds_), std::end(kinds_),
                     [](const auto& kind) { return kind.load(); });
}

bool Tracer::wants_to_know() const {
  if (tracing_ || callbacks_wanted()) return true;
  if (!graphs_.empty()) return true;  // begun while they were traced
  return stays_ && stays_costly_;
}

int Tracer::enable(uint32_t kind) {
  if (kind == 0 || kind >= kKinds) return kErrorInvalidKind;
  bool both = (kind == kKernel && enabled(kConcurrentKernel)) ||
              (kind == kConcurrentKernel && enabled(kKernel));
  if (both) return kErrorNotCompatible;
  if (int error = attach()) return error;
  ask_what_stays();
  std::lock_guard lock(output_.mutex());
  if (kind == kRuntime || kind == kDriver) set_apis(kind, true);
  if (kind == kConcurrentKernel || kind == kKernel) stays_ = true;
  if (kind == kGraphTrace && !enabled(kGraphTrace)) {
    const Driver* driver = load_driver();
    graphs_from_before_ = driver == nullptr ? 0 : driver->newest_id();
  }
  kinds_[kind] = true;
  return observe() ? kSuccess : kErrorUnknown;
}

int Tracer::disable(uint32_t kind) {
  if (kind == 0 || kind >= kKinds) return kErrorInvalidKind;
  ask_what_stays();
  std::lock_guard lock(output_.mutex());
  if (kind == kRuntime || kind == kDriver) set_apis(kind, false);
  kinds_[kind] = false;
  observe();
  return kSuccess;
}

int Tracer::enable_api(uint32_t domain, uint32_t cbid, bool on) {
  if (cbid == 0 || cbid >= kMaxCbid) return kErrorInvalidParameter;
  if (int error = attach()) return error;
  std::lock_guard lock(output_.mutex());
  auto& set = cbids_[domain_index(domain)];
  set[cbid] = on;
  apis_[domain_index(domain)] =
      std::any_of(set.begin(), set.end(), [](const auto& one) { return one.load(); });
  return observe() ? kSuccess : kErrorUnknown;
}

void Tracer::set_apis(uint32_t kind, bool on) {
  for (std::atomic<bool>& one : cbids_[domain_index(kind)]) one = on;
  apis_[domain_index(kind)] = on;
}

bool Tracer::enabled(uint32_t kind) const {
  auto on = [this](uint32_t k) { return kinds_[k].load(std::memory_order_relaxed); };
  if (on(kind)) return true;
  if (kind == kMemcpy2) return on(kMemcpy);
  if (version_ >= kSyncSeparate) return false;
  if (kind == kSynchronization) return on(kCudaEvent);
  return kind == kCudaEvent && on(kSynchronization);
}

bool Tracer::traces(const ApiEvent& event) const {
  const int domain = event.runtime ? 0 : 1;
  if (!apis_[domain]) return false;
  const uint32_t cbid =
      event.runtime ? runtime_cbid(event.name) : driver_cbid(event.name);
  return cbid != 0 && cbids_[domain][cbid];
}

// Functions that a client has switched off cost nothing, as with the real library they
// cost next to nothing; PyTorch asks for the current device thousands of times a step.
Charge Tracer::charge(const ApiEvent& event) const {
  if (traces(event)) return Charge::kTraced;
  const bool kernels = enabled(kConcurrentKernel) || enabled(kKernel);
  if (!kernels && !stays_) return Charge::kNothing;
  if (strstr(event.name, "Launch") == nullptr) return Charge::kNothing;
  return kernels ? Charge::kTraced : Charge::kStays;
}

void Tracer::finalize() {
  for (uint32_t kind = 1; kind < kKinds; ++kind) disable(kind);
  stays_ = false;
  std::lock_guard lock(output_.mutex());
  output_.forget();
  clock_.set_callback(nullptr);
  std::lock_guard pending(pending_mutex_);
  pending_ = {};
  graphs_.clear();
  contexts_.clear();
  observe_locked();
}

int Tracer::flush(bool forced) {
  int64_t start = now_ns();
  spin_until(start + settings().flush_ns);
  bool any;
  {
    std::lock_guard lock(output_.mutex());
    if (!output_.has_callbacks()) return kSuccess;
    collect(forced);
    any = output_.close_all();
  }
  output_.deliver();
  if (!any || !enabled(kOverhead)) return kSuccess;
  constexpr uint32_t kBufferFlush = 1 << 16;
  std::lock_guard lock(output_.mutex());
  write_overhead(kBufferFlush, 0, start, now_ns());
  return kSuccess;
}

void Tracer::on_api_end(const ApiEvent& event) {
  if (!tracing_ || in_client() || !event.outermost) return;
  std::lock_guard lock(output_.mutex());
  clock_.look();
  write_api(event);
  collect(false);
}

void Tracer::on_op(const OpEvent& op) {
  std::lock_guard lock(pending_mutex_);
  if (trace_graph(op)) return;
  uint32_t kind = record_kind(op);
  bool wanted = kind != 0 && enabled(kind);
  if (kind == kConcurrentKernel) wanted |= enabled(kKernel);
  if (wanted) push(op);
}

void Tracer::push(const OpEvent& op) {
  OpEvent kept = op;
  int64_t room = settings().device_room;
  // No device memory is left for its times.
  if (room != 0 && static_cast<int64_t>(pending_.size()) >= room) kept.start_ns = 0;
  pending_.push(kept);
}

// Part of a graph of which only the whole is traced?
bool Tracer::trace_graph(const OpEvent& op) {
  if (op.graph == 0) return false;
  auto run = graphs_.find(op.correlation);
  if (run == graphs_.end()) {
    if (!enabled(kGraphTrace)) return false;
    // CUPTI 13.0.1 with driver 580.159 dies within the program's cuGraphLaunch
    // (docs/decisions/no_graph_trace.md).
    if (op.graph <= graphs_from_before_) raise(SIGSEGV);
    run = graphs_.emplace(op.correlation, GraphRun{}).first;
  }
  if (record_kind(op) != 0) {
    run->second.start_ns = std::min(run->second.start_ns, op.start_ns);
    run->second.end_ns = std::max(run->second.end_ns, op.end_ns);
  }
  if (!op.graph_end) return true;
  OpEvent whole = op;
  whole.kind = kGraphLaunch;
  bool empty = run->second.start_ns == kNever;
  whole.start_ns = empty ? op.start_ns : run->second.start_ns;
  whole.end_ns = empty ? op.end_ns : run->second.end_ns;
  graphs_.erase(run);
  if (graphs_.empty()) observe_locked();
  push(whole);
  return true;
}

void Tracer::on_context(uint64_t context, uint32_t device) {
  std::lock_guard lock(pending_mutex_);
  contexts_.emplace_back(static_cast<uint32_t>(context), device);
}

void Tracer::collect(bool forced) {
  std::vector<std::pair<uint32_t, uint32_t>> contexts;
  std::vector<OpEvent> ended, unfinished;
  {
    std::lock_guard lock(pending_mutex_);
    int64_t now = now_ns();
    contexts.swap(contexts_);
    while (!pending_.empty() && (forced || pending_.top().end_ns <= now)) {
      (pending_.top().end_ns <= now ? ended : unfinished).push_back(pending_.top());
      pending_.pop();
    }
  }
  if (ended.empty() && unfinished.empty() && contexts.empty()) return;
  clock_.look();
  for (auto [context, device] : contexts) {
    if (enabled(kDevice)) write_device(device);
    if (enabled(kContext)) write_context(context, device);
  }
  for (const OpEvent& op : ended) write_op(op, false);
  for (const OpEvent& op : unfinished) write_op(op, true);
}

std::vector<uint64_t>* external_ids(uint32_t kind) {
  thread_local std::vector<uint64_t> t_ids[kExternalKinds];
  return kind == 0 || kind >= kExternalKinds ? nullptr : &t_ids[kind];
}

uint32_t record_thread(bool system_id) {
  if (!system_id) return static_cast<uint32_t>(pthread_self());
  thread_local uint32_t t_tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return t_tid;
}

}  // namespace lull::sim::cupti
