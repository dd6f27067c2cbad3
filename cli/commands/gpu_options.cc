#include "cli/commands/gpu_options.h"

#include "daemon/base/status.h"

namespace lull {

void AddGpuOptions(CLI::App* verb, GpuFlags* flags) {
  verb->add_option("--gpu", flags->mode,
                   "how much of the GPU is traced: host (nothing), window (now and "
                   "then, see --schedule) or continuous")
      ->capture_default_str()
      ->type_name("host|window|continuous")
      ->configurable();
  verb->add_option("--schedule", flags->schedule,
                   "when windows are: skip_first=5,wait=20,warmup=1,active=5,repeat=0 "
                   "in training steps (the default), or by the clock, like "
                   "wait=4s,warmup=200ms,active=1s; finalize=1 (experimental) takes "
                   "CUPTI down after each")
      ->type_name("WORDS")
      ->configurable();
}

absl::StatusOr<relay::GpuPlan> MakeGpuPlan(const GpuFlags& flags) {
  absl::StatusOr<v1::GpuMode> mode = relay::ParseGpuMode(flags.mode);
  if (!mode.ok()) return Annotate(mode.status(), "--gpu");
  relay::GpuPlan plan;
  if (!flags.schedule.empty()) {
    if (*mode != v1::GPU_MODE_WINDOW) {
      return absl::InvalidArgumentError("--schedule is of --gpu window alone");
    }
    auto schedule = relay::ParseGpuSchedule(flags.schedule);
    if (!schedule.ok()) return Annotate(schedule.status(), "--schedule");
    plan = *schedule;
  }
  plan.mode = *mode;
  return plan;
}

}  // namespace lull
