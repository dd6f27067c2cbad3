// `lull tag`, `lull untag`, `lull pin` and `lull unpin`: what people say of jobs that
// the collector has.
#include <memory>
#include <string>
#include <vector>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/compared_jobs.h"
#include "cli/commands/verbs.h"
#include "cli/render/marks.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

struct MarkOptions {
  CollectorFlags collector;
  std::string jobs;
  std::vector<std::string> tags;
  bool json = false;
};

using Change = void (*)(const MarkOptions& options, v1::MarkRequest* request);

absl::StatusOr<v1::MarkReply> Mark(const MarkOptions& options, Change change) {
  v1::MarkRequest request;
  LULL_ASSIGN_OR_RETURN(auto jobs, JobsOf(options.jobs));
  LULL_ASSIGN_OR_RETURN(auto client, Connect(options.collector));
  LULL_ASSIGN_OR_RETURN(jobs,
                        WithoutTags(*client, std::move(jobs), /*with_damaged=*/true));
  for (std::string& job : jobs) request.add_jobs(std::move(job));
  change(options, &request);
  return client->Mark(request);
}

void AddVerb(CLI::App& app, int* exit_code, const char* name, const char* what,
             const char* footer, bool with_tags, Change change) {
  auto options = std::make_shared<MarkOptions>();
  CLI::App* verb = app.add_subcommand(name, what);
  verb->footer(footer);
  verb->add_option("JOB", options->jobs,
                   "job, or jobs: A1,A2,A3, by the beginning of their ids or by their "
                   "names, or tag:TAG for all that have TAG; a comma of a name is \\,")
      ->required()
      ->type_name("");
  if (with_tags) {
    verb->add_option("TAG", options->tags, "a word; several may be given")
        ->required()
        ->type_name("");
  }
  verb->add_flag("--json", options->json, "print JSON instead of sentences");
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([options, exit_code, name, change] {
    auto reply = Mark(*options, change);
    if (!reply.ok()) {
      *exit_code = Fail(name, reply.status());
      return;
    }
    PrintAnswer(options->json,
                options->json ? JsonText(MarkedJson(*reply)) : MarkedText(*reply));
  });
}

}  // namespace

void AddMarks(CLI::App& app, int* exit_code) {
  AddVerb(
      app, exit_code, "tag", "Put tags on jobs, to find and compare them by",
      "A job may have many tags, and many jobs the same one. `lull run --tag` puts "
      "them "
      "on from\nthe start. Lists of jobs take tag:TAG for all jobs that have it.\n\n"
      "Examples:\n  lull tag 3f2a1c20,77aa00ff naive\n  lull jobs --tag naive\n"
      "  lull diff tag:naive tag:mended",
      /*with_tags=*/true, [](const MarkOptions& options, v1::MarkRequest* request) {
        for (const std::string& tag : options.tags) request->add_add_tags(tag);
      });
  AddVerb(app, exit_code, "untag", "Take tags off jobs",
          "Example:\n  lull untag tag:naive naive", /*with_tags=*/true,
          [](const MarkOptions& options, v1::MarkRequest* request) {
            for (const std::string& tag : options.tags) request->add_remove_tags(tag);
          });
  AddVerb(app, exit_code, "pin", "Keep jobs: the collector never deletes them",
          "Other jobs are deleted 30 days after their end, and the oldest where the "
          "database "
          "grows\nbeyond its size (lulld --max-age, --max-size). What is pinned counts "
          "towards that size.\n\nExample:\n  lull pin baseline",
          /*with_tags=*/false, [](const MarkOptions&, v1::MarkRequest* request) {
            request->set_pinned(true);
          });
  AddVerb(
      app, exit_code, "unpin", "Let the collector delete jobs again when they are old",
      "One that is older than the collector keeps jobs for goes within seconds.\n\n"
      "Example:\n  lull unpin baseline",
      /*with_tags=*/false,
      [](const MarkOptions&, v1::MarkRequest* request) { request->set_pinned(false); });
}

}  // namespace lull
