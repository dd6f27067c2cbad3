#include "tests/sim/engine/timeline.h"

#include <algorithm>
#include <utility>

#include "tests/sim/engine/clock.h"

namespace lull::sim {

Timeline::Timeline(const Config& config, Listener listener)
    : config_(config),
      listener_(std::move(listener)),
      devices_(static_cast<size_t>(std::max<int64_t>(config.devices, 1)),
               Resources(config)) {}

void Timeline::submit(const OpPtr& op, std::span<const OpPtr> dependencies) {
  op->ready_ns = op->submit_ns + config_.latency_ns;
  for (const OpPtr& before : dependencies) {
    if (before == nullptr) continue;
    int64_t end = before->end_ns.load(std::memory_order_relaxed);
    if (end == kUnscheduled) {
      before->dependents.push_back(op);
      ++op->waiting_for;
    } else {
      op->ready_ns = std::max(op->ready_ns, end);
    }
  }
  if (op->waiting_for == 0) schedule_ready(op);
}

void Timeline::finish(const OpPtr& op, int64_t start_ns, int64_t end_ns) {
  settle(op.get(), start_ns, end_ns);
  std::vector<OpPtr> dependents = std::exchange(op->dependents, {});
  for (const OpPtr& next : dependents) {
    next->ready_ns = std::max(next->ready_ns, end_ns);
    if (--next->waiting_for == 0) schedule_ready(next);
  }
}

// A worklist, not recursion: a long chain may become ready at once.
void Timeline::schedule_ready(OpPtr op) {
  std::vector<OpPtr> ready{std::move(op)};
  while (!ready.empty()) {
    OpPtr next = std::move(ready.back());
    ready.pop_back();
    if (next->spec.host_function) {
      listener_.host_function(next);
      continue;
    }
    if (next->spec.exchange != nullptr) {
      next->start_ns = next->ready_ns;
      int64_t end = listener_.exchange(next);
      if (end == kUnscheduled) continue;
      settle(next.get(), next->start_ns, end);
    } else {
      place(next.get());
    }
    std::vector<OpPtr> dependents = std::exchange(next->dependents, {});
    // Backwards, so that the first to be submitted is the first to be placed.
    for (auto it = dependents.rbegin(); it != dependents.rend(); ++it) {
      (*it)->ready_ns = std::max((*it)->ready_ns, next->end_ns.load());
      if (--(*it)->waiting_for == 0) ready.push_back(*it);
    }
  }
}

void Timeline::place(Op* op) {
  if (op->spec.effect) op->spec.effect();
  op->spec.effect = nullptr;
  int64_t duration = op->spec.duration_ns;
  int64_t start = op->ready_ns;
  if (Servers* servers = resource(*op)) {
    start = servers->reserve(op->ready_ns, duration, op->submit_ns);
  }
  settle(op, start, start + duration);
}

void Timeline::settle(Op* op, int64_t start_ns, int64_t end_ns) {
  op->start_ns = start_ns;
  op->end_ns.store(end_ns, std::memory_order_release);
  // Before anybody who waits for it goes on: a host function's thread may lose its
  // processor here, and what comes after would have no records yet.
  listener_.scheduled(*op);
  op->scheduled.store(1, std::memory_order_release);
  futex_wake_all(reinterpret_cast<uint32_t*>(&op->scheduled));
}

Servers* Timeline::resource(const Op& op) {
  Resources& device = devices_[op.device];
  switch (op.spec.kind) {
    case OpKind::kKernel:
      return &device.kernels;
    case OpKind::kCopy:
      if (op.spec.copy == CopyKind::kH2D) return &device.h2d;
      if (op.spec.copy == CopyKind::kD2H) return &device.d2h;
      return nullptr;
    default:
      return nullptr;
  }
}

int64_t Timeline::wait(const OpPtr& op) {
  int64_t begin = now_ns();
  if (op->done(begin)) return 0;
  while (op->scheduled.load(std::memory_order_acquire) == 0) {
    futex_wait(reinterpret_cast<const uint32_t*>(&op->scheduled), 0);
  }
  sleep_until(op->end_ns.load(std::memory_order_acquire));
  return now_ns() - begin;
}

}  // namespace lull::sim
