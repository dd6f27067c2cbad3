// `lull fleet`: what all jobs cost together.
#include "cli/render/fleet.h"

#include <memory>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/fleet_request.h"
#include "cli/commands/verbs.h"

namespace lull {
namespace {

struct FleetOptions {
  CollectorFlags collector;
  bool json = false;
  FleetJobs jobs;
};

int Run(const FleetOptions& options) {
  auto request = FleetRequestOf(options.jobs);
  if (!request.ok()) return Fail("fleet", request.status().message(), kExitUsage);
  auto client = Connect(options.collector);
  if (!client.ok()) return Fail("fleet", client.status());
  auto reply = (*client)->GetFleet(*request);
  if (!reply.ok()) return Fail("fleet", reply.status().message(), kExitFailed);
  if (absl::Status status = CheckGroups(*request, *reply); !status.ok()) {
    return Fail("fleet", status.message(), kExitFailed);
  }
  PrintAnswer(options.json,
              options.json ? JsonText(FleetJson(*reply, *request))
                           : FleetText(*reply, *request, FleetWords(options.jobs)));
  return 0;
}

}  // namespace

void AddFleet(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<FleetOptions>();
  CLI::App* verb = app.add_subcommand(
      "fleet", "Idle GPU time of all jobs together, by cause, line, job and host");
  verb->footer(
      "Of the jobs of one collector, or of all that write to the ClickHouse of "
      "`lulld\n--clickhouse`. Example:\n  lull fleet --since 24h\n  lull fleet --user "
      "ada --tag nightly --json");
  verb->add_flag("--json", options->json, "print JSON instead of tables");
  verb->add_option("--top", options->jobs.top,
                   "rows of each list at most; 0 for all, up to 10,000")
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--since", options->jobs.since,
                   "jobs that ran in the last TIME (90m, 24h, 30d), or all")
      ->capture_default_str()
      ->type_name("TIME");
  verb->add_option("--until", options->jobs.until, "only those that had ended TIME ago")
      ->type_name("TIME");
  verb->add_option("--by", options->jobs.by,
                   "what jobs are added up by, too; day and week are of UTC, on which "
                   "they ended")
      ->capture_default_str()
      ->check(
          CLI::IsMember({"user", "host", "name", "tag", "day", "week"}).description(""))
      ->type_name("user|host|name|tag|day|week");
  verb->add_option("--name", options->jobs.name, "only jobs of this name")
      ->type_name("NAME");
  verb->add_option("--user", options->jobs.user, "only jobs of this user")
      ->type_name("USER");
  verb->add_option("--host", options->jobs.host, "only jobs that ran on this host")
      ->type_name("HOST");
  verb->add_option("--tag", options->jobs.tags,
                   "only jobs with this tag; of several, with all of them")
      ->type_name("TAG")
      ->allow_extra_args(false);
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([options, exit_code] { *exit_code = Run(*options); });
}

}  // namespace lull
