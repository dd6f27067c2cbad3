// What is asked of GPU tracing in a job: how much, and when.
//
// Windows recur: `wait` without tracing, `warmup` traced and thrown away, `active`
// traced; before the first one `skip_first`; over again `repeat` times, 0 is without
// end. The words are those of torch.profiler.schedule. They count training steps or,
// with a unit of time, the clock.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "events.pb.h"
#include "preload/abi/segment.h"

namespace lull::relay {

struct GpuPlan {
  struct Steps {
    uint32_t skip_first = 5;  // what is allocated and tuned once
    uint32_t wait = 20;
    uint32_t warmup = 1;
    uint32_t active = 5;

    bool operator==(const Steps&) const = default;
  };
  struct Clock {
    uint64_t skip_first_ns = 0;
    uint64_t wait_ns = 4'000'000'000;
    uint64_t warmup_ns = 200'000'000;
    uint64_t active_ns = 1'000'000'000;

    bool operator==(const Clock&) const = default;
  };

  lull::v1::GpuMode mode = lull::v1::GPU_MODE_WINDOW;
  bool always_by_clock = false;  // else only where a process shows no steps
  Steps steps;
  Clock clock;
  uint32_t repeat = 0;
  bool finalize = false;  // CUPTI is taken down after each window

  bool operator==(const GpuPlan&) const = default;
};

// "host", "window" or "continuous".
absl::StatusOr<lull::v1::GpuMode> ParseGpuMode(absl::string_view text);

// "wait=20,warmup=1,active=5": steps; "wait=2s,active=500ms": the clock. "finalize=1"
// goes with either. What is not named stays as it is by default. The message of an
// error names the word that is wrong.
absl::StatusOr<GpuPlan> ParseGpuSchedule(absl::string_view text);

// The schedule that the plan goes by, as ParseGpuSchedule() reads it; "" where the
// mode has none.
std::string ScheduleText(const GpuPlan& plan);

// What the shim goes by, into the control block.
void WriteGpuPlan(const GpuPlan& plan, abi::ControlBlock* control);
// The same for a newcomer, whose segment is not mapped, and whether it sleeps; false
// when it cannot be mapped.
bool PrepareControl(const GpuPlan& plan, bool armed, uint64_t now_ns, int memfd);
// Puts a process to sleep.
void PutToSleep(uint64_t now_ns, abi::ControlBlock* control);

}  // namespace lull::relay
