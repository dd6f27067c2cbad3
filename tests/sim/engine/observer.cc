#include "tests/sim/engine/observer.h"

#include <algorithm>
#include <atomic>

#include "tests/sim/engine/clock.h"
#include "tests/sim/engine/objects.h"
#include "tests/sim/engine/thread.h"

namespace lull::sim {
namespace {

// A process may map several copies of libcupti.
constexpr int kPlaces = 4;
std::atomic<const Observer*> g_observers[kPlaces];
std::atomic<int> g_count{0};

template <typename Visit>
void for_each(Visit visit) {
  for (auto& place : g_observers) {
    const Observer* observer = place.load(std::memory_order_acquire);
    if (observer != nullptr) visit(*observer);
  }
}

}  // namespace

bool add_observer(const Observer* observer) {
  for (auto& place : g_observers) {
    if (place.load() == observer) return true;
  }
  for (auto& place : g_observers) {
    const Observer* expected = nullptr;
    if (!place.compare_exchange_strong(expected, observer)) continue;
    g_count.fetch_add(1);
    return true;
  }
  return false;
}

void remove_observer(const Observer* observer) {
  for (auto& place : g_observers) {
    const Observer* expected = observer;
    if (place.compare_exchange_strong(expected, nullptr)) g_count.fetch_sub(1);
  }
}

bool observed() { return g_count.load(std::memory_order_relaxed) != 0; }

void notify(void (*Observer::*callback)(const ApiEvent*), const ApiEvent& event) {
  for_each([&](const Observer& observer) { (observer.*callback)(&event); });
}

void notify(const SyncEvent& event) {
  for_each([&](const Observer& observer) { observer.sync(&event); });
}

void notify(const StallEvent& event) {
  for_each([&](const Observer& observer) { observer.stall(&event); });
}

void notify_op(const Op& op) {
  if (!observed()) return;
  const OpSpec& spec = op.spec;
  OpEvent event{};
  event.kind = static_cast<uint16_t>(spec.kind);
  event.copy = static_cast<uint8_t>(spec.copy);
  event.pageable = spec.pageable;
  event.asynchronous = spec.asynchronous;
  event.graph_end = op.graph_end;
  event.device = op.device;
  event.source_device =
      spec.source_device >= 0 ? static_cast<uint32_t>(spec.source_device) : op.device;
  event.tid = op.tid;
  event.context = op.context;
  event.stream = op.stream;
  event.correlation = op.correlation;
  event.graph = op.graph;
  event.graph_node = op.graph_node;
  event.handle = spec.handle;
  event.bytes = spec.bytes;
  event.value = spec.value;
  event.name = spec.function != nullptr ? spec.function->name.c_str() : nullptr;
  std::copy_n(spec.shape, 6, event.shape);
  event.shared = spec.shared;
  event.submit_ns = op.submit_ns;
  event.start_ns = op.start_ns;
  event.end_ns = op.end_ns.load(std::memory_order_relaxed);
  for_each([&](const Observer& observer) { observer.op(&event); });
}

void notify_context(uint64_t context, uint32_t device) {
  for_each([&](const Observer& observer) { observer.context(context, device); });
}

Charge observers_charge(const ApiEvent& event) {
  Charge dearest = Charge::kNothing;
  for_each([&](const Observer& observer) {
    dearest = std::max(dearest, observer.charges(&event));
  });
  return dearest;
}

SyncScope::SyncScope(SyncKind kind, bool query) : observed_(observed()) {
  if (!observed_) return;
  event.kind = kind;
  event.query = query;
  event.start_ns = now_ns();
}

SyncScope::~SyncScope() {
  if (!observed_) return;
  ThreadState& thread = this_thread();
  event.end_ns = now_ns();
  event.correlation = thread.correlation;
  if (event.context == 0 && thread.context() != nullptr) {
    event.context = thread.context()->id;
  }
  notify(event);
}

}  // namespace lull::sim
