#include "daemon/relay/samples/run_delay.h"

#include <algorithm>

#include "daemon/base/event_views.h"

namespace lull::relay {
namespace {

constexpr uint64_t kTracedPeriodNs = 50'000'000;
constexpr uint64_t kPeriodNs = 200'000'000;
// Totals alone are told then, and /proc/PID/task/TID/{status,stat} are dear to read.
constexpr uint64_t kUntracedPeriodNs = 500'000'000;

}  // namespace

bool RunDelaySampler::IsDue(uint64_t now_ns, bool tracing) {
  const uint64_t period_ns = tracing ? kTracedPeriodNs : kUntracedPeriodNs;
  changes_ = tracing != tracing_;
  if (!changes_ && now_ns - asked_ns_ < period_ns) return false;
  tracing_ = tracing;
  asked_ns_ = now_ns;
  return true;
}

void RunDelaySampler::Forget(uint32_t tid) {
  threads_.erase(tid);
  files_.erase(tid);
}

std::optional<abi::Event> RunDelaySampler::Sample(uint32_t tid, uint64_t now_ns) {
  ThreadFiles& files = files_.try_emplace(tid, pid_, tid).first->second;
  Scheduling now;
  if (!files.Slices(&now)) {
    Forget(tid);
    return std::nullopt;
  }
  auto known = threads_.find(tid);
  bool new_span = true;
  if (known != threads_.end()) {
    const Scheduling& last = known->second.last;
    if (now.delay_ns == last.delay_ns) known->second.nothing_ns = now_ns;
    new_span = changes_ || now_ns - known->second.at_ns >= kPeriodNs;
    if (!new_span && now.delay_ns - last.delay_ns < kLittleDelayNs) return std::nullopt;
    // One that has got no processor since was neither pre-empted nor moved.
    if (last.slices == now.slices && last.delay_ns == now.delay_ns) {
      return Advance(tid, last, now_ns);
    }
  }
  bool waits = false;
  if (!files.Moves(&now, &waits)) {
    Forget(tid);
    return std::nullopt;
  }
  if (waits && !new_span) return std::nullopt;
  // Its last pre-emption may have begun the wait that it is in.
  if (waits && known != threads_.end() &&
      now.involuntary > known->second.last.involuntary) {
    --now.involuntary;
  }
  return Advance(tid, now, now_ns);
}

std::optional<abi::Event> RunDelaySampler::Advance(uint32_t tid, const Scheduling& now,
                                                   uint64_t now_ns) {
  auto [entry, fresh] = threads_.try_emplace(tid, Thread{now, now_ns, now_ns});
  if (fresh || now_ns < entry->second.at_ns) return std::nullopt;
  Thread before = entry->second;
  entry->second = {now, now_ns, now_ns};
  return Told(before, now, before.at_ns, now_ns);
}

std::optional<abi::Event> RunDelaySampler::Looked(uint32_t tid,
                                                  const SchedulingLook& look) {
  auto known = threads_.find(tid);
  if (known == threads_.end() || look.at_ns <= known->second.at_ns) return std::nullopt;
  const Thread before = known->second;
  // Its counters were read before those, whatever the times say.
  if (look.now.delay_ns < before.last.delay_ns ||
      look.now.slices < before.last.slices ||
      look.now.involuntary < before.last.involuntary) {
    return std::nullopt;
  }
  known->second = {look.now, look.at_ns, look.at_ns};
  const uint64_t since_ns =
      std::max({look.since_ns, before.at_ns, std::min(before.nothing_ns, look.at_ns)});
  const uint64_t delay_ns = look.now.delay_ns - before.last.delay_ns;
  const uint64_t first_ns = since_ns - std::min(since_ns, delay_ns);
  return Told(before, look.now, std::max(before.at_ns, first_ns), look.at_ns);
}

std::optional<abi::Event> RunDelaySampler::Told(const Thread& before,
                                                const Scheduling& now,
                                                uint64_t since_ns, uint64_t until_ns) {
  // Another thread under the same number.
  if (now.delay_ns < before.last.delay_ns || now.slices < before.last.slices ||
      now.involuntary < before.last.involuntary || until_ns < since_ns) {
    return std::nullopt;
  }
  abi::Event event{};
  event.type = kRunDelayType;
  event.start_ns = since_ns;
  event.duration_ns = until_ns - since_ns;
  const RunDelayView delay{event};
  delay.set_delay_ns(now.delay_ns - before.last.delay_ns)
      .set_migrations(now.processor != before.last.processor ? 1 : 0)
      .set_preemptions(static_cast<uint32_t>(
          std::min<uint64_t>(now.involuntary - before.last.involuntary, UINT32_MAX)));
  const bool waited =
      delay.delay_ns() != 0 || delay.migrations() != 0 || delay.preemptions() != 0;
  return waited ? std::optional(event) : std::nullopt;
}

}  // namespace lull::relay
