// `lull jobs`: the jobs that the collector knows.
#include <memory>
#include <string>
#include <vector>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {
namespace {

struct JobsOptions {
  CollectorFlags collector;
  bool json = false;
  uint32_t top = 20;
  std::vector<std::string> tags;
};

int Run(const JobsOptions& options) {
  auto client = Connect(options.collector);
  if (!client.ok()) return Fail("jobs", client.status());
  v1::ListJobsRequest request;
  request.set_limit(options.top);
  for (const std::string& tag : options.tags) request.add_tags(tag);
  auto reply = (*client)->ListJobs(request);
  if (!reply.ok()) return Fail("jobs", reply.status().message(), kExitFailed);
  PrintAnswer(options.json,
              options.json ? JsonText(JobsJson(*reply)) : JobsText(*reply));
  return 0;
}

}  // namespace

void AddJobs(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<JobsOptions>();
  CLI::App* verb =
      app.add_subcommand("jobs", "The jobs that the collector knows, newest first");
  verb->footer("Example:\n  lull jobs --top 5\n  lull jobs --tag naive");
  verb->add_flag("--json", options->json, "print JSON instead of a table");
  verb->add_option("--top", options->top, "rows at most, 0 for all")
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--tag", options->tags,
                   "only jobs with this tag; of several, with all of them")
      ->type_name("TAG")
      ->allow_extra_args(false);
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([options, exit_code] { *exit_code = Run(*options); });
}

}  // namespace lull
