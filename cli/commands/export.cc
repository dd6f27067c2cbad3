// `lull export`: a job as a trace for other tools.
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/output_file.h"
#include "cli/commands/progress_line.h"
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

struct ExportOptions {
  QueryOptions query;
  std::string format;  // "": as the file is called
  std::string output;
};

bool IsPerfetto(const ExportOptions& options) {
  if (!options.format.empty()) return options.format == "perfetto";
  const absl::string_view name = absl::StripSuffix(options.output, ".gz");
  return absl::EndsWith(name, ".pftrace") || absl::EndsWith(name, ".perfetto-trace");
}

absl::StatusOr<v1::ExportRequest> RequestOf(const ExportOptions& options) {
  LULL_ASSIGN_OR_RETURN(v1::ReportRequest query, MakeRequest(options.query));
  v1::ExportRequest request;
  request.set_job(query.job());
  request.set_format(IsPerfetto(options) ? v1::EXPORT_FORMAT_PERFETTO
                                         : v1::EXPORT_FORMAT_CHROME);
  if (query.has_rank()) request.set_rank(query.rank());
  if (query.has_pid()) request.set_pid(query.pid());
  if (query.has_since_ns()) request.set_since_ns(query.since_ns());
  if (query.has_until_ns()) request.set_until_ns(query.until_ns());
  return request;
}

int Execute(const ExportOptions& options) {
  auto request = RequestOf(options);
  if (!request.ok()) return Fail("export", request.status().message(), kExitUsage);
  const bool to_stdout = options.output.empty() || options.output == "-";
  if (to_stdout && isatty(STDOUT_FILENO) == 1) {
    return Fail("export", "nobody reads a trace on a terminal; name a file with -o",
                kExitUsage);
  }
  for (absl::string_view end : {".zst", ".xz", ".bz2", ".zip", ".lz4"}) {
    if (!absl::EndsWith(options.output, end)) continue;
    return Fail("export",
                absl::StrCat(options.output,
                             " would not be what it is called: traces "
                             "are packed as gzip; let its name end in .gz"),
                kExitUsage);
  }
  auto client = Connect(options.query.collector);
  if (!client.ok()) return Fail("export", client.status());
  ProgressLine line("export", /*quiet=*/false);
  OutputFile file(options.output);
  absl::Status done = file.Open();
  if (done.ok()) {
    done = (*client)->Export(*request, [&](const std::string& bytes, double share) {
      line.Show(options.output, share);
      return file.Write(bytes);
    });
  }
  if (done.ok()) done = file.Finish();
  line.Clear();
  if (done.ok()) return 0;
  return Fail("export", done.message(), kExitFailed);
}

}  // namespace

void AddExport(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* verb = app.add_subcommand(
      "export",
      "Write a job as a trace that other tools read: Perfetto, HTA, TraceLens");
  verb->footer(
      "perfetto is for https://ui.perfetto.dev: threads with their lines, streams with "
      "an\n"
      "arrow from the call to each operation, steps, memory, how busy a GPU was, and "
      "above\n"
      "its streams when and why it idled, with the line in the arguments, and how much "
      "of it\n"
      "syncs waste.\n"
      "chrome is the same as JSON of torch.profiler: HTA and TraceLens read it, "
      "chrome://tracing\n"
      "shows it, and so does `lull import`; HTA wants one file of each rank.\n\n"
      "Examples:\n"
      "  lull export -o trace.pftrace.gz\n"
      "  lull export resnet --rank 0 --since 2m --until 150s -o rank0.json.gz");
  verb->add_option("JOB", options->query.job,
                   "job: beginning of its id, or its name (default: the newest)")
      ->type_name("");
  verb->add_option("--format", options->format,
                   "for whom (default: perfetto where the file is called .pftrace, "
                   "else chrome)")
      ->check(CLI::IsMember({"chrome", "perfetto"}).description(""))
      ->type_name("chrome|perfetto");
  verb->add_option(
          "-o,--output", options->output,
          "the file; packed where its name ends in .gz (default, and -: stdout)")
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
