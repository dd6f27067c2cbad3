// `lull export`: a job as a trace for other tools.
#include <unistd.h>

#include <memory>
#include <string>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

struct ExportOptions {
  QueryOptions query;
  std::string format = "chrome";
  std::string output;
};

absl::StatusOr<v1::ExportRequest> RequestOf(const ExportOptions& options) {
  LULL_ASSIGN_OR_RETURN(v1::ReportRequest query, MakeRequest(options.query));
  v1::ExportRequest request;
  request.set_job(query.job());
  if (query.has_rank()) request.set_rank(query.rank());
  if (query.has_pid()) request.set_pid(query.pid());
  if (query.has_since_ns()) request.set_since_ns(query.since_ns());
  if (query.has_until_ns()) request.set_until_ns(query.until_ns());
  return request;
}

int Execute(const ExportOptions& options) {
  auto request = RequestOf(options);
  if (!request.ok()) {
    PrintError("export", request.status().message());
    return kExitUsage;
  }
  if (options.output.empty() && isatty(STDOUT_FILENO) == 1) {
    PrintError("export", "nobody reads a trace on a terminal; name a file with -o");
    return kExitUsage;
  }
  auto client = Connect(options.query.collector);
  if (!client.ok()) {
    PrintError("export", client.status().message());
    return absl::IsInvalidArgument(client.status()) ? kExitUsage : kExitFailed;
  }
  OutputFile file(options.output);
  absl::Status done = file.Open();
  if (done.ok()) {
    done = (*client)->Export(
        *request, [&file](const std::string& bytes) { return file.Write(bytes); });
  }
  if (done.ok()) done = file.Finish();
  if (done.ok()) return 0;
  PrintError("export", done.message());
  return kExitFailed;
}

}  // namespace

void AddExport(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = app.add_subcommand(
      "export",
      "Write a job as a trace that other tools read: Perfetto, HTA, TraceLens");
  verb->footer(
      "chrome is the JSON of torch.profiler: what threads did with its lines, calls "
      "of\n"
      "CUDA, what ran on each stream, steps, memory, and a row of idle time, by "
      "cause,\n"
      "below the streams. https://ui.perfetto.dev and chrome://tracing show it, HTA "
      "and\n"
      "TraceLens read it, and so does `lull import`; HTA wants one file of each "
      "rank.\n\n"
      "Examples:\n"
      "  lull export -o trace.json.gz\n"
      "  lull export resnet --rank 0 --since 2m --until 150s -o rank0.json.gz");
  verb->add_option("JOB", options->query.job,
                   "job: beginning of its id, or its name (default: the newest)")
      ->type_name("");
  verb->add_option("--format", options->format, "for whom")
      ->capture_default_str()
      ->check(CLI::IsMember({"chrome"}).description(""))
      ->type_name("chrome");
  verb->add_option("-o,--output", options->output,
                   "the file; packed where its name ends in .gz (default: stdout)")
      ->type_name("FILE");
  verb->add_option("--rank", options->query.rank, "only this rank of a distributed job")
      ->type_name("R");
  verb->add_option("--pid", options->query.pid, "only this process")->type_name("PID");
  verb->add_option("--since", options->query.since,
                   "only what began this long after the job's start: 90s, 2m, 1h")
      ->type_name("TIME");
  verb->add_option("--until", options->query.until, "only what began earlier than this")
      ->type_name("TIME");
  AddCollectorOptions(verb, &options->query.collector);
  verb->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace lull
