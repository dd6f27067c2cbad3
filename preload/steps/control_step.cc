#include "preload/steps/control_step.h"

#include "preload/entry/state.h"
#include "preload/stacks/interning.h"

namespace lull {

std::atomic<uint32_t> g_control_steps{0};

namespace {

constexpr uint64_t kFirstSteps = 8;
// A step that takes longer than this is not like the others.
constexpr uint64_t kLongestInSteps = 8;
constexpr uint64_t kLongestBeyondNs = 200'000'000;

// The generation of the process whose present step began as a control step; 0: none.
std::atomic<uint32_t> g_going_on{0};

bool is_tracing(char* segment) {
  return abi::SegmentView(segment).header().cupti_state.load(
             std::memory_order_relaxed) ==
         static_cast<uint32_t>(abi::CuptiState::kTracing);
}

uint32_t generation() { return g_state->generation.load(std::memory_order_relaxed); }

}  // namespace

bool is_control_step(uint64_t number, uint32_t one_in) {
  if (one_in == 0 || number <= kFirstSteps) return false;
  return number % one_in == mix(number / one_in, one_in) % one_in;
}

void control_step_begin(char* segment, uint64_t number, uint64_t length_ns,
                        uint64_t now_ns) {
  abi::ControlBlock& control = abi::SegmentView(segment).control();
  if (!is_control_step(number, control.control_steps.load(std::memory_order_relaxed))) {
    return;
  }
  if (length_ns == 0 || is_tracing(segment)) return;
  g_control_steps.fetch_add(1, std::memory_order_relaxed);
  control.control_until_ns.store(
      now_ns + kLongestInSteps * length_ns + kLongestBeyondNs,
      std::memory_order_relaxed);
  g_going_on.store(generation(), std::memory_order_relaxed);
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

uint64_t control_step_end(char* segment, uint64_t start_ns, uint64_t now_ns) {
  if (g_going_on.exchange(0, std::memory_order_relaxed) != generation()) return 0;
  abi::ControlBlock& control = abi::SegmentView(segment).control();
  uint32_t armed = abi::kControlStep;
  if (control.armed.compare_exchange_strong(armed, abi::kArmed,
                                            std::memory_order_acq_rel)) {
    control.control_until_ns.store(now_ns, std::memory_order_relaxed);
    return now_ns > start_ns ? now_ns - start_ns : 0;
  }
  // The relay has broken it off.
  const uint64_t until = control.control_until_ns.load(std::memory_order_relaxed);
  if (until <= start_ns) return 0;
  return (until < now_ns ? until : now_ns) - start_ns;
}

}  // namespace lull
