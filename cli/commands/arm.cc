// `lull arm` and `lull disarm`: wake a running job up, and put it back to sleep.
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/gpu_options.h"
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/arming.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

struct ArmOptions {
  CollectorFlags collector;
  std::string job;
  std::string time;  // --for; "" = until told
  GpuFlags gpu{"", ""};
  bool json = false;
};

absl::StatusOr<v1::ArmRequest> MakeArmRequest(const ArmOptions& options, bool armed) {
  v1::ArmRequest request;
  request.set_job(options.job);
  request.set_armed(armed);
  if (!options.time.empty()) {
    auto time = ParseTime(options.time);
    if (!time.ok()) return Annotate(time.status(), "--for");
    if (*time == 0) return absl::InvalidArgumentError("--for: no time at all");
    request.set_for_ns(*time);
  }
  if (options.gpu.mode.empty() && options.gpu.schedule.empty()) return request;
  GpuFlags flags = options.gpu;
  if (flags.mode.empty()) flags.mode = "window";  // what a schedule is of
  LULL_ASSIGN_OR_RETURN(relay::GpuPlan plan, MakeGpuPlan(flags));
  request.mutable_gpu()->set_mode(plan.mode);
  request.mutable_gpu()->set_schedule(relay::ScheduleText(plan));
  return request;
}

int Execute(const char* verb, const ArmOptions& options, bool armed) {
  auto request = MakeArmRequest(options, armed);
  if (!request.ok()) return Fail(verb, request.status());
  auto client = Connect(options.collector);
  if (!client.ok()) return Fail(verb, client.status());
  auto reply = (*client)->Arm(*request);
  if (!reply.ok()) return Fail(verb, reply.status().message(), kExitFailed);
  PrintAnswer(options.json,
              options.json ? JsonText(ArmedJson(*reply)) : ArmedText(*reply));
  return 0;
}

void AddCommon(CLI::App* verb, ArmOptions* options) {
  verb->add_option("JOB", options->job,
                   "job: beginning of its id, or its name (default: the newest)")
      ->type_name("");
  verb->add_flag("--json", options->json, "print JSON instead of a sentence");
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
}

}  // namespace

void AddArm(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ArmOptions>();
  CLI::App* verb = app.add_subcommand(
      "arm", "Wake a running job up: record from now on, or for a time");
  verb->footer(
      "Reaches every process of the job that lull is in, and those that come later; "
      "also on\nother hosts, through the job's collector. It answers once the job's "
      "relay has done it.\nA job that is armed already goes on as the new command "
      "says.\n\n"
      "Examples:\n  lull arm resnet --for 60s    (after: lull run --dormant --name "
      "resnet -- ...)\n"
      "  lull arm resnet --for 10s --gpu continuous\n"
      "  lull arm resnet --schedule wait=50,warmup=1,active=3");
  AddCommon(verb, options.get());
  verb->add_option("--for", options->time,
                   "asleep again after so long: 90s, 2m, 1h (default: until `lull "
                   "disarm`)")
      ->type_name("TIME");
  verb->add_option(
          "--gpu", options->gpu.mode,
          "how much of the GPU is traced: host, window or continuous (default: "
          "as the job was started)")
      ->type_name("MODE");
  verb->add_option("--schedule", options->gpu.schedule,
                   "when windows are, as for `lull run`; steps count from the arming")
      ->type_name("WORDS");
  verb->callback([options, exit_code] { *exit_code = Execute("arm", *options, true); });
}

void AddDisarm(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ArmOptions>();
  CLI::App* verb = app.add_subcommand(
      "disarm", "Put a running job to sleep: record nothing, cost nothing");
  verb->footer("Example:\n  lull disarm resnet");
  AddCommon(verb, options.get());
  verb->callback(
      [options, exit_code] { *exit_code = Execute("disarm", *options, false); });
}

}  // namespace lull
