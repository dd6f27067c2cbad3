#include "cli/commands/session_options.h"

#include "cli/commands/collector_options.h"
#include "cli/commands/terminal.h"

namespace lull {

void AddSessionOptions(CLI::App* verb, SessionOptions* options) {
  verb->add_option("--name", options->name, "a name for the job, to ask for it later")
      ->type_name("NAME");
  verb->add_flag("--quiet", options->quiet, "no summary at the end");
  verb->add_option("--overhead-budget", options->overhead_budget_percent,
                   "cost that measuring may have, in percent of the job's time")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 100.0).description(""))
      ->type_name("PERCENT");
  AddTerminalOptions(verb, /*answers=*/false);
  AddCollectorOptions(verb, &options->collector);
}

}  // namespace lull
