#include "preload/steps/control_step.h"

#include "preload/abi/control_step.h"
#include "preload/entry/state.h"
#include "preload/stacks/interning.h"

namespace lull {
namespace {

constexpr uint64_t kFirstSteps = 8;
// A step that takes longer than this is not like the others.
constexpr uint64_t kLongestInSteps = 8;
constexpr uint64_t kLongestBeyondNs = 200'000'000;

// Of the segment of this generation, how often the relay has cut one off, as far as we
// know; generation << 32 | count.
std::atomic<uint64_t> g_cuts_known{0};

bool is_tracing(char* segment) {
  return abi::SegmentView(segment).header().cupti_state.load(
             std::memory_order_relaxed) ==
         static_cast<uint32_t>(abi::CuptiState::kTracing);
}

// Whether the relay has cut one off since the last question.
bool was_cut_off(const abi::ControlBlock& control) {
  uint64_t cuts = control.control_cut.load(std::memory_order_acquire);
  cuts |= uint64_t{g_state->generation.load(std::memory_order_relaxed)} << 32;
  const uint64_t known = g_cuts_known.exchange(cuts, std::memory_order_relaxed);
  return known != cuts && static_cast<uint32_t>(cuts) != 0;
}

}  // namespace

bool is_control_step(uint64_t number, uint32_t one_in, uint32_t halvings) {
  if (number <= kFirstSteps) return false;
  for (uint32_t i = 0; i < halvings && i < abi::kMostHalvings; ++i) {
    const uint64_t halves = number >> i;
    if ((halves & 1) != (mix(halves >> 1, i) & 1)) return true;
  }
  if (halvings != 0 || one_in == 0) return false;
  return number % one_in == mix(number / one_in, one_in) % one_in;
}

void control_step_begin(char* segment, uint64_t number, uint64_t length_ns,
                        Rested before, uint64_t now_ns) {
  abi::ControlBlock& control = abi::SegmentView(segment).control();
  const uint32_t halvings = control.recorded_halvings.load(std::memory_order_relaxed);
  const uint32_t one_in = control.control_steps.load(std::memory_order_relaxed);
  if (!is_control_step(number, one_in, halvings)) return;
  // Where few are control steps, each needs neighbours to be compared with. And after
  // one that was cut off, how long a step takes is not known.
  if (before.told || (before.ns != 0 && halvings == 0)) return;
  if (length_ns == 0 || is_tracing(segment)) return;
  control.control_since_ns.store(now_ns, std::memory_order_relaxed);
  control.control_until_ns.store(
      now_ns + kLongestInSteps * length_ns + kLongestBeyondNs,
      std::memory_order_relaxed);
  // Fails where the relay has just put the process to sleep.
  uint32_t armed = abi::kArmed;
  control.armed.compare_exchange_strong(armed, abi::kControlStep,
                                        std::memory_order_acq_rel);
}

char* control_step_segment() {
  if (g_state->mode.load(std::memory_order_acquire) != Mode::kRecording) return nullptr;
  char* segment = g_state->segment.load(std::memory_order_relaxed);
  const uint32_t armed =
      abi::SegmentView(segment).control().armed.load(std::memory_order_acquire);
  return armed == abi::kControlStep ? segment : nullptr;
}

Rested control_step_end(char* segment, uint64_t start_ns, uint64_t now_ns) {
  abi::ControlBlock& control = abi::SegmentView(segment).control();
  if (abi::begin_to_wake(control)) {
    const uint64_t since = control.control_since_ns.load(std::memory_order_relaxed);
    abi::wake(control, now_ns);
    const uint64_t from = since > start_ns ? since : start_ns;
    return {now_ns > from ? now_ns - from : 0, false};
  }
  if (!was_cut_off(control)) return {0, false};
  const uint64_t until = control.control_until_ns.load(std::memory_order_relaxed);
  if (until <= start_ns) return {0, true};
  return {(until < now_ns ? until : now_ns) - start_ns, true};
}

}  // namespace lull
