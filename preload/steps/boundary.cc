#include "preload/steps/boundary.h"

#include <atomic>

#include "preload/cupti/gpu.h"
#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/steps/control_step.h"

namespace lull {
namespace {

// `generation`: a fork child begins anew, with its own segment. `arming`: what was
// before the process was put to sleep is no step.
std::atomic<uint32_t> g_generation{0};
std::atomic<uint32_t> g_arming{0};
std::atomic<uint64_t> g_boundary_ns{0};  // 0: none yet
std::atomic<uint64_t> g_number{0};       // of the latest step; the first is 1

// Returns its number.
uint64_t record_step(char* segment, uint64_t start, uint64_t end, Rested rested,
                     abi::StepSource source) {
  abi::Ref stack = python_stack(segment);
  uint64_t number = g_number.fetch_add(1, std::memory_order_relaxed) + 1;
  if (abi::Event* event = reserve_event(segment)) {
    *event = {
        .start_ns = start,
        .duration_ns = end - start,
        .arg0 = number,
        .arg1 = rested.ns,
        .py_stack = stack,
        .native_stack = 0,
        .arg2 = static_cast<uint32_t>(source),
        .api = 0,
        .type = abi::EventType::kStep,
        .flags = rested.told ? uint8_t{abi::kFlagCutOff} : uint8_t{0},
    };
    commit_event();
  }
  return number;
}

}  // namespace

void step_boundary(abi::StepSource source, Seen seen) {
  char* segment = recording_segment();
  if (segment == nullptr) segment = control_step_segment();
  if (segment == nullptr) return;
  uint64_t now = monotonic_ns();
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (g_generation.exchange(generation, std::memory_order_relaxed) != generation) {
    g_boundary_ns.store(0, std::memory_order_relaxed);
    g_number.store(0, std::memory_order_relaxed);
  }
  uint32_t arming =
      abi::SegmentView(segment).control().arming.load(std::memory_order_relaxed);
  if (g_arming.exchange(arming, std::memory_order_relaxed) != arming) {
    g_boundary_ns.store(0, std::memory_order_relaxed);
  }
  uint64_t start = g_boundary_ns.exchange(now, std::memory_order_relaxed);
  if (start == 0 || start > now) start = now;
  const Rested rested = control_step_end(segment, start, now);
  const uint64_t number = record_step(segment, start, now, rested, source);
  account_self(now);
  gpu_step_boundary(segment);  // keeps its own account
  if (seen == Seen::kAlways) {
    control_step_begin(segment, number + 1, now - start, rested, now);
  }
}

}  // namespace lull
