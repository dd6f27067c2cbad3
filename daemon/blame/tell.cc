#include <algorithm>

#include "daemon/base/check.h"
#include "daemon/blame/engine_impl.h"
#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

constexpr size_t kManyThreads = 4096;
constexpr size_t kFewStretches = 128;

}  // namespace

void Engine::Impl::TellAll(bool all) {
  for (auto& [id, device] : devices_) {
    device.Tell(Judged(device), delays_, options_.coverage_ns, all);
  }
  TellSyncs();
}

void Engine::Impl::TellSyncs() {
  uint64_t final_ns = passed_ns_;
  // Where tracing is never ended, it ends with the last operation.
  if (traced_.on()) {
    final_ns = std::min(final_ns, std::max(busy_reach_ns_, traced_.since_ns()));
  }
  for (const auto& [id, device] : devices_) {
    final_ns = std::min(final_ns, device.told_ns());
  }
  size_t told = 0;
  for (; told < syncs_.size() && syncs_[told].end_ns <= final_ns; ++told) {
    const HostEvent& sync = syncs_[told];
    if (!traced_.Contains(sync.start_ns, sync.end_ns) ||
        lost_.Touches(sync.start_ns, sync.end_ns)) {
      continue;
    }
    if (sync.start_ns < busy_from_ns_) {
      ++counters_.late_host_events;
      continue;
    }
    const uint64_t needed_ns = busy_.Covered(sync.start_ns, sync.end_ns);
    LULL_CHECK(needed_ns <= sync.end_ns - sync.start_ns,
               "a sync needed more time than it took");
    sink_.OnSync({sync, needed_ns});
  }
  syncs_.DropFront(told);
}

void Engine::Impl::Prune() {
  uint64_t states = Minus(passed_ns_, options_.patience_ns);
  if (traced_.on()) {
    for (const auto& [id, device] : devices_) {
      if (device.used) states = std::min(states, device.idle_since());
    }
  }
  states = Minus(states, options_.clock_tolerance_ns);
  uint64_t reach = Plus(options_.queue_ns, options_.clock_tolerance_ns);
  // Syncs come when they are over; those that took up to twice the patience are told.
  uint64_t history = Minus(states, options_.patience_ns);
  DropBefore(states, Minus(passed_ns_, reach), history);
  calls_.Prune(passed_ns_);
  streams_.Prune(passed_ns_);
}

void Engine::Impl::DropBefore(uint64_t states_ns, uint64_t hooks_ns,
                              uint64_t history_ns) {
  for (auto it = threads_.begin(); it != threads_.end();) {
    it->second.DropBefore(states_ns, hooks_ns);
    bool idle = threads_.size() > kManyThreads && it->second.size() == 0;
    it = idle ? threads_.erase(it) : std::next(it);
  }
  last_thread_ = nullptr;
  uint64_t delays = states_ns;
  for (const auto& [id, device] : devices_) {
    if (device.used) delays = std::min(delays, device.delays_ns());
  }
  delays_.DropFront(delays_.CountWhile(
      [&](const RunDelay& delay) { return delay.end_ns <= delays; }));
  // Looking at all syncs is for when there is something to gain.
  if (busy_.size() + traced_.size() + lost_.size() < history_kept_ * 2) return;
  for (size_t i = 0; i < syncs_.size(); ++i) {
    history_ns = std::min(history_ns, syncs_[i].start_ns);
  }
  busy_from_ns_ = std::max(busy_from_ns_, history_ns);
  busy_.DropBefore(busy_from_ns_);
  lost_.DropBefore(history_ns);
  traced_.DropBefore(history_ns);
  history_kept_ = busy_.size() + traced_.size() + lost_.size() + kFewStretches;
}

uint64_t Engine::Impl::MedianTime() const {
  std::vector<uint64_t> times = calls_.Starts();
  for (size_t i = 0; i < operations_.size(); ++i) {
    times.push_back(operations_[i].start_ns);
  }
  for (size_t i = 0; i < syncs_.size(); ++i) times.push_back(syncs_[i].end_ns);
  for (size_t i = 0; i < delays_.size(); ++i) times.push_back(delays_[i].end_ns);
  for (const auto& [tid, thread] : threads_) thread.AppendTimes(&times);
  if (times.empty()) return passed_ns_;
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Judges the older half of what is held with what is there, and lets go of it.
void Engine::Impl::Overflow() {
  ++counters_.overflows;
  const uint64_t cut = Plus(MedianTime(), 1);
  const uint64_t host = host_ns_;
  host_ns_ = kNever;  // wait for nothing
  Sweep(cut);
  host_ns_ = host;
  if (traced_.on()) {
    for (auto& [id, device] : devices_) GiveUp(device, cut);
  }
  TellAll(true);
  syncs_.DropFront(
      syncs_.CountWhile([&](const HostEvent& sync) { return sync.end_ns <= cut; }));
  history_kept_ = 0;
  DropBefore(cut, cut, cut);
  calls_.DropBefore(cut);
  streams_.DropBefore(cut);
}

}  // namespace lull::blame
