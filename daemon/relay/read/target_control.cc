// What the relay tells a target, and what it looks at on its behalf.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/procfs/live_threads.h"
#include "daemon/relay/read/target.h"

namespace lull::relay {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

void Target::InitControl(const TargetOptions& options) {
  abi::ControlBlock& control = segment_.control();
  control.wait_threshold_ns.store(options.settings.wait_threshold_ns() != 0
                                      ? options.settings.wait_threshold_ns()
                                      : abi::kDefaultWaitThresholdNs,
                                  kRelaxed);
  control.late_launch_ns.store(abi::kDefaultLateLaunchNs, kRelaxed);
  if (options.armed) {
    Arm(options.gpu, MonotonicNs());
  } else {
    WriteGpuPlan(options.gpu, &control);
    Disarm(MonotonicNs());
  }
}

void Target::GoOnIfUnread(uint64_t now_ns) {
  if (!armed_ || WhyEnded() != abi::EndedBy::kUnread) return;
  // Pairs with the release in preload/ring/backing.cc: until then it is the shim that
  // writes there.
  if (segment_.control().armed.load(std::memory_order_acquire) != 0) return;
  armed_ = false;
  Arm(gpu_schedule_->plan(), now_ns);
}

void Target::Arm(const GpuPlan& gpu, uint64_t now_ns) {
  const abi::EndedBy ended = WhyEnded();
  if (corrupt_ || (ended != abi::EndedBy{} && ended != abi::EndedBy::kUnread)) return;
  abi::ControlBlock& control = segment_.control();
  bool afresh = !armed_ || gpu_schedule_->plan() != gpu;
  armed_ = true;
  if (afresh) gpu_schedule_.emplace(gpu, gpu_clock_.get());
  WriteGpuPlan(gpu, &control);
  DriveGpu(now_ns);
  // Pairs with the acquire in preload/cupti/tracer.cc: the plan is written.
  if (afresh) control.arming.fetch_add(1, std::memory_order_release);
  control.armed.store(1, std::memory_order_release);
}

void Target::Disarm(uint64_t now_ns) {
  armed_ = false;
  abi::ControlBlock& control = segment_.control();
  // Not again: since when it sleeps stays as it is.
  if (control.armed.load(kRelaxed) != 0) PutToSleep(now_ns, &control);
  for (const Ring& ring : rings_) run_delay_.Forget(ring.tid);
  samples_planned_ns_ = 0;  // at once
  FollowSamples(now_ns, false);
}

void Target::Govern(uint64_t now_ns) {
  uint64_t hooks_ns = 0;
  for (uint32_t i = 0; i < rings_.size(); ++i) hooks_ns += segment_.Ring(i).self_ns;
  Governor::Verdict verdict =
      governor_.Update(now_ns, hooks_ns, Total(segment_.header().gpu_self_ns));
  segment_.control().thinning.store(verdict.thinning, kRelaxed);
  if (verdict.gpu_hold == gpu_hold_) return;
  gpu_hold_ = verdict.gpu_hold;
  segment_.control().gpu_hold.store(gpu_hold_ ? 1 : 0, kRelaxed);
  LogInfo(absl::StrCat("GPU tracing of process ", info_.pid(),
                       gpu_hold_ ? " is held: the overhead budget is spent"
                                 : " goes on: it is within the overhead budget"));
}

void Target::DriveGpu(uint64_t now_ns) {
  if (!armed_) return;
  GpuSchedule::Verdict verdict =
      gpu_schedule_->Update(now_ns, segment_.GpuCalls(), gpu_hold_);
  abi::ControlBlock& control = segment_.control();
  // The state first: it is in force from the moment that gpu_by_clock is 1.
  control.gpu_clock_state.store(static_cast<uint32_t>(verdict.state), kRelaxed);
  control.gpu_by_clock.store(verdict.by_clock ? 1 : 0, std::memory_order_release);
}

void Target::FollowRunDelay(BatchBuilder* batch, uint64_t now_ns) {
  // Its events end now, not when this pass began: the counters of what was read
  // meanwhile may be as of a later time than that.
  if (run_delay_.IsDue(now_ns, IsTracing())) SampleRunDelay(batch, MonotonicNs());
}

void Target::SampleRunDelay(BatchBuilder* batch, uint64_t now_ns) {
  // In another pid namespace its thread ids are not ours.
  if (!armed_ || corrupt_ || ended_ || info_.pid() == 0 ||
      segment_.header().pid != info_.pid()) {
    return;
  }
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    Ring& ring = rings_[i];
    if (!ring.submits) continue;
    if (segment_.Owner(i) == abi::kFreeRing) {
      run_delay_.Forget(ring.tid);
      continue;
    }
    std::optional<abi::Event> event = run_delay_.Sample(ring.tid, now_ns);
    if (!event) continue;
    batch->AddEvents(key(), kRelayRing, own_ring_.next++, &*event, 1, ring.tid);
  }
}

void Target::FreeRings() {
  if (corrupt_ || ended_) return;
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    Ring& ring = rings_[i];
    if (ring.gone == abi::kFreeRing) continue;
    // Its head stands still, so that all that it committed is released by now or later.
    if (segment_.Ring(i).head != ring.released) continue;
    segment_.FreeRing(i, ring.gone);
    ring.gone = abi::kFreeRing;
    ring.submits = ring.allocates = false;
  }
  FindGoneThreads();
}

// Threads are only looked at when others have come since: as long as nobody wants a
// ring, none need be free.
void Target::FindGoneThreads() {
  uint32_t takings = segment_.header().rings_taken.load(std::memory_order_acquire);
  if (takings == takings_seen_) return;
  // The owners before the threads: whoever takes a ring meanwhile is not taken for one
  // that is gone.
  std::vector<abi::OwnerWord> owners(rings_.size());
  absl::flat_hash_map<uint32_t, uint32_t> last_taking;  // of a thread id
  absl::flat_hash_set<uint32_t> asked;
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    owners[i] = segment_.Owner(i);
    if (owners[i] == abi::kFreeRing) continue;
    asked.insert(abi::tid_of(owners[i]));
    uint32_t& last = last_taking[abi::tid_of(owners[i])];
    last = std::max(last, abi::taking_of(owners[i]));
  }
  auto threads =
      LiveThreads(pid(), segment_.header().pid != info_.pid(), std::move(asked));
  // Of a process that has just ended none can be seen, either.
  threads_unseen_ = !threads.has_value() && !HasExited();
  if (!threads) return;
  takings_seen_ = takings;
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    if (owners[i] == abi::kFreeRing) continue;
    uint32_t tid = abi::tid_of(owners[i]);
    // The number of a thread that is gone may be another one's by now.
    bool alive =
        threads->contains(tid) && last_taking[tid] == abi::taking_of(owners[i]);
    if (!alive) rings_[i].gone = owners[i];
  }
}

}  // namespace lull::relay
