#include "daemon/relay/read/target_counters.h"

#include <algorithm>
#include <utility>

#include "daemon/base/text.h"
#include "daemon/relay/read/target_control.h"
#include "daemon/relay/samples/run_delay.h"

namespace lull::relay {
namespace {

constexpr uint64_t kCountersPeriodNs = 500'000'000;

// The target may write any number there. Whoever reads such an enum expects values that
// it does not know.
template <typename Enum>
Enum Word(const std::atomic<uint32_t>& word) {
  return static_cast<Enum>(word.load(std::memory_order_relaxed));
}

}  // namespace

lull::v1::ProcessCounters CountersOf(const SegmentReader& segment,
                                     const TargetRings& rings, bool corrupt) {
  const abi::SegmentHeader& header = segment.header();
  constexpr auto kRelaxed = std::memory_order_relaxed;
  lull::v1::ProcessCounters counters;
#define LULL_SET(total) counters.set_##total(Total(header.total));
  LULL_HEADER_TOTALS(LULL_SET)
#undef LULL_SET
  counters.set_stacks_rejected(Total(header.arena_rejected));
  counters.set_gpu_calls(segment.GpuCalls());
  counters.set_native_stacks(Word<lull::v1::NativeStackState>(header.native_stacks));
  counters.set_gc_hook(Word<lull::v1::GcHookState>(header.gc_hook));
  counters.set_cupti_state(Word<lull::v1::CuptiState>(header.cupti_state));
  counters.set_cupti_version(header.cupti_version.load(kRelaxed));
  counters.set_cupti_result(header.cupti_result.load(kRelaxed));
  counters.set_step_hook(Word<lull::v1::StepHookState>(header.step_hook));
  counters.set_scope_hook(Word<lull::v1::ScopeHookState>(header.scope_hook));
  counters.set_corrupt(corrupt);
  const abi::EndedBy ended = WhyEnded(segment);
  counters.set_no_memory(ended == abi::EndedBy::kNoMemory);
  counters.set_seccomp_filter(ended == abi::EndedBy::kFilter);
  counters.set_unanswered(ended == abi::EndedBy::kUnanswered);
  counters.set_unread(ended == abi::EndedBy::kUnread);
  counters.set_threads_unseen(rings.threads_unseen());
  if (rings.own().next > 0) {
    lull::v1::RingCounters* own = counters.add_rings();
    own->set_ring(kRelayRing);
    own->set_committed(rings.own().next);
    own->set_lost_relay(rings.own().lost_relay);
  }
  for (uint32_t i = 0; i < rings.size(); ++i) {
    RingView view = segment.Ring(i);
    const TargetRing& ring = rings.at(i);
    if (view.head == 0 && view.lost == 0 && view.short_waits == 0 &&
        ring.lost_relay == 0) {
      continue;
    }
    lull::v1::RingCounters* out = counters.add_rings();
    out->set_ring(i);
    // A head beyond that is corrupt, as the next reading will find.
    uint64_t most = ring.next + (corrupt ? 0 : abi::kRingEvents);
    out->set_committed(std::min({view.head, most, kMaxWireTotal}));
    out->set_lost_full(view.lost);
    out->set_lost_relay(std::min(ring.lost_relay, kMaxWireTotal));
    out->set_self_ns(view.self_ns);
    out->set_short_waits(view.short_waits);
    out->set_short_waits_ns(view.short_waits_ns);
    out->set_thinned_launches(view.thinned_launches);
  }
  return counters;
}

bool CounterReport::IsDue(uint64_t now_ns) const {
  return now_ns - at_ns_ >= kCountersPeriodNs;
}

void CounterReport::Add(lull::v1::ProcessCounters counters, uint64_t now_ns,
                        uint64_t as_of_ns, BatchBuilder* batch) {
  at_ns_ = now_ns;
  std::string bytes = counters.SerializeAsString();
  if (bytes == sent_) return;
  sent_ = std::move(bytes);
  counters.set_as_of_ns(as_of_ns);
  batch->AddCounters(std::move(counters));
}

void CounterReport::Drop() {
  sent_ = committed_;
  at_ns_ = 0;
}

}  // namespace lull::relay
