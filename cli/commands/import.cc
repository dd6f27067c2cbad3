// `lull import`: traces of other profilers as a job.
#include "daemon/import/import.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/client/places.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/progress_line.h"
#include "cli/commands/session_options.h"
#include "cli/commands/verbs.h"
#include "cli/job/job_info.h"
#include "cli/render/imported.h"
#include "daemon/base/status.h"
#include "daemon/import/trace_files.h"
#include "daemon/relay/deliver/deliver.h"

namespace lull {
namespace {

// The collector takes millions of events a second; one that acknowledges nothing for so
// long is gone.
constexpr absl::Duration kDeliveryOfImport = absl::Minutes(10);

struct ImportVerbOptions {
  std::vector<std::string> paths;
  std::string name;
  std::vector<std::string> tags;
  bool quiet = false;
  CollectorFlags collector;
};

v1::JobInfo InfoOf(const ImportVerbOptions& options, const std::string& id) {
  v1::JobInfo job = MakeJobInfo(
      options.name, absl::StrCat("lull import ", CommandText(options.paths)), {});
  job.set_id(id);
  job.mutable_tags()->Add(options.tags.begin(), options.tags.end());
  job.clear_overhead_budget_percent();
  job.clear_settings();
  return job;
}

// A collector, and whether it has all of the job.
struct Asked {
  std::unique_ptr<CollectorClient> client;
  bool has_job = false;
  v1::Job job;
};

absl::Status Ask(const std::string& id, Asked* asked) {
  v1::ReportRequest request;
  request.set_job(id);
  request.add_sections(v1::SECTION_GC);
  request.set_until_ns(0);  // nothing of it is wanted but the job
  auto reply = asked->client->GetReport(request);
  if (absl::IsNotFound(reply.status())) return absl::OkStatus();
  LULL_RETURN_IF_ERROR(reply.status());
  asked->job = reply->job();
  asked->has_job = reply->job().ended();
  return absl::OkStatus();
}

absl::StatusOr<Asked> ConnectAndAsk(const CollectorFlags& collector,
                                    const std::string& id) {
  Asked asked;
  LULL_ASSIGN_OR_RETURN(asked.client, Connect(collector));
  LULL_RETURN_IF_ERROR(Ask(id, &asked));
  return asked;
}

// A name or a tag that is not taken is told also to who wants to hear nothing else.
void TellKnown(const ImportVerbOptions& options, const std::string& id,
               const std::string& name) {
  const bool other_name = !options.name.empty() && options.name != name;
  if (options.quiet && !other_name && options.tags.empty()) return;
  std::string text = absl::StrCat("these files were imported before, as job ",
                                  name.empty() ? id : name);
  if (other_name) {
    absl::StrAppend(&text, "; it keeps that name, and is not called ", options.name);
  }
  if (!options.tags.empty()) {
    absl::StrAppend(&text, "; its tags stay as they are (lull tag puts others on)");
  }
  PrintError("import", text);
}

// The collector starts while the files are read; nothing is made of them where it has
// the job, or does not answer. `whole`: another import left the spool whole meanwhile.
absl::StatusOr<Asked> ReadFiles(const ImportVerbOptions& options, const std::string& id,
                                const std::vector<std::string>& files,
                                const std::string& spool, v1::JobInfo* job,
                                bool* whole) {
  using Answer = absl::StatusOr<Asked>;
  std::atomic<bool> wanted = true;
  std::future<Answer> answer = std::async(std::launch::async, [&]() -> Answer {
    Answer first = ConnectAndAsk(options.collector, id);
    wanted = first.ok() && !first->has_job;
    return first;
  });
  std::optional<Answer> asked;
  auto confirm = [&]() -> absl::Status {
    if (!asked) {
      asked = answer.get();
      LULL_RETURN_IF_ERROR(asked->status());
    } else {
      LULL_RETURN_IF_ERROR(Ask(id, &**asked));
    }
    return (*asked)->has_job ? absl::CancelledError("not wanted") : absl::OkStatus();
  };
  *job = InfoOf(options, id);
  absl::StatusOr<uint64_t> most_bytes = imports::MostSpoolBytes(files);
  absl::Status written = most_bytes.status();
  if (written.ok()) {
    ProgressLine line("import", options.quiet);
    written = imports::WriteSpool(
        files, spool,
        [&](size_t file, double share) {
          line.Show(std::filesystem::path(files[file]).filename().string(), share);
          return wanted.load();
        },
        confirm, job, *most_bytes);
  }
  if (!asked) asked = answer.get();
  if (!asked->ok() || (*asked)->has_job) return *std::move(asked);
  *whole = absl::IsAlreadyExists(written);
  if (!*whole) LULL_RETURN_IF_ERROR(written);
  return *std::move(asked);
}

absl::Status Import(const ImportVerbOptions& options, std::string* id) {
  LULL_ASSIGN_OR_RETURN(auto files, imports::FindTraces(options.paths));
  LULL_ASSIGN_OR_RETURN(*id, imports::JobIdOf(files));
  LULL_ASSIGN_OR_RETURN(std::string runtime, PrepareRuntimeDirectory());
  LULL_ASSIGN_OR_RETURN(ChosenCollector collector,
                        ResolveCollector(options.collector, runtime));
  for (const std::string& place : SpoolPlaces(runtime, collector.is_private)) {
    imports::RemoveUnfinished(place);
  }
  const std::string spool = SpoolDirectory(runtime, collector.is_private, *id);
  // One that is whole already only has to be delivered.
  bool whole = std::filesystem::exists(spool + "/hello");
  v1::JobInfo job;
  LULL_ASSIGN_OR_RETURN(Asked asked,
                        whole ? ConnectAndAsk(options.collector, *id)
                              : ReadFiles(options, *id, files, spool, &job, &whole));
  if (asked.has_job) {
    TellKnown(options, *id, asked.job.name());
    return absl::OkStatus();
  }
  relay::DeliverOptions deliver;
  LULL_ASSIGN_OR_RETURN(deliver.collector, ForWriting(collector));
  deliver.timeout = kDeliveryOfImport;
  absl::Status delivered = relay::DeliverSpool(spool, deliver);
  v1::ImportInfo imported = job.imported();
  if (whole || !delivered.ok()) {
    // Somebody else may have taken it over meanwhile.
    LULL_RETURN_IF_ERROR(Ask(*id, &asked));
    if (!asked.has_job) {
      return delivered.ok() ? absl::InternalError("the collector does not have the job")
                            : delivered;
    }
    imported = asked.job.imported();
  }
  if (!options.quiet) PrintError("import", ImportedLine(imported));
  return absl::OkStatus();
}

int Execute(const ImportVerbOptions& options) {
  std::string id;
  absl::Status done = Import(options, &id);
  if (!done.ok()) return Fail("import", done.message(), kExitFailed);
  Print(absl::StrCat(id, "\n"));
  return 0;
}

}  // namespace

void AddImport(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ImportVerbOptions>();
  CLI::App* verb = app.add_subcommand(
      "import",
      "Make a job of traces of torch.profiler or Nsight Systems, or of memory "
      "snapshots of PyTorch: lull import PATH...");
  verb->footer(
      "PATH is a trace of torch.profiler (.json, .json.gz), an SQLite export of "
      "Nsight\n"
      "Systems (.sqlite), a memory snapshot of PyTorch (.pickle), or a folder with "
      "those of\n"
      "all ranks. The job is one like any other: `lull gaps`, `lull report` and the "
      "others\n"
      "show it, and `lull memory` a snapshot, of which nothing is executed. Its id, "
      "which is\n"
      "printed, is the hash of the files: the same files are the same job.\n\n"
      "A file that is damaged or cut short makes no job.\n\nExamples:\n"
      "  lull import trace.json.gz\n"
      "  lull gaps $(lull import --name step_40 traces/)");
  verb->add_option("PATH", options->paths, "traces, or folders of them")
      ->required()
      ->type_name("");
  verb->add_option("--name", options->name, "a name for the job, to ask for it later")
      ->type_name("NAME");
  AddTagOption(verb, &options->tags);
  verb->add_flag("--quiet", options->quiet, "nothing but the id, and errors");
  AddCollectorOptions(verb, &options->collector);
  verb->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace lull
