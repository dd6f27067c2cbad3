// `lull diff`: two programs, or two states of one, by their runs.
#include "cli/render/diff.h"

#include <memory>
#include <string>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/compared_jobs.h"
#include "cli/commands/numbers.h"
#include "cli/commands/output_file.h"
#include "cli/commands/verbs.h"
#include "cli/html/page.h"

namespace lull {
namespace {

struct DiffOptions {
  CollectorFlags collector;
  std::string a, b;
  bool json = false;
  std::string html;
  uint32_t top = 10;
  double difference_percent = 2;
};

int Execute(const DiffOptions& options) {
  auto a = JobsOf(options.a), b = JobsOf(options.b);
  if (!a.ok()) return Fail("diff", a.status().message(), kExitUsage);
  if (!b.ok()) return Fail("diff", b.status().message(), kExitUsage);
  auto client = Connect(options.collector);
  if (!client.ok()) return Fail("diff", client.status());
  compare::Question question;
  question.difference_percent = options.difference_percent;
  auto comparison = CompareJobs(**client, {*a, *b}, question);
  if (!comparison.ok()) return Fail("diff", comparison.status());
  if (!options.html.empty()) {
    absl::Status written =
        WriteWhole(options.html, DiffPage(*comparison, options.top, MadeNow()));
    return written.ok() ? 0 : Fail("diff", written.message(), kExitFailed);
  }
  PrintAnswer(options.json, options.json ? JsonText(DiffJson(*comparison, options.top))
                                         : DiffText(*comparison, options.top));
  return 0;
}

}  // namespace

void AddDiff(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* verb = app.add_subcommand(
      "diff", "What is different between two programs: step time, syncs, causes");
  verb->footer(
      "A and B are jobs, by the beginning of their ids or by their names, or\n"
      "several runs each: A1,A2,A3, or tag:TAG for all jobs with a tag (lull tag). A\n"
      "comma of a name is written \\,. Only steps of the steady state are compared.\n"
      "Counts of syncs are exact; that a program is faster or slower is only said\n"
      "where several runs a side show it.\n\n"
      "Examples:\n  lull diff naive mended\n"
      "  lull diff naive-1,naive-2,naive-3 mended-1,mended-2,mended-3 --json\n"
      "  lull diff tag:naive tag:mended");
  verb->add_option("A", options->a, "job, or jobs, before the change")
      ->required()
      ->type_name("");
  verb->add_option("B", options->b, "job, or jobs, after it")
      ->required()
      ->type_name("");
  CLI::Option* json =
      verb->add_flag("--json", options->json, "print JSON instead of tables");
  verb->add_option("--html", options->html,
                   "write a page for a browser into FILE, \"-\" for stdout")
      ->type_name("FILE")
      ->excludes(json);
  verb->add_option("--top", options->top, "rows of a table at most, 0 for all")
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--difference", options->difference_percent,
                   "say how many runs would show a change of so many percent")
      ->capture_default_str()
      ->check(NumberFrom(0.01, 1000))
      ->type_name("PERCENT");
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace lull
