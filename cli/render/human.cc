#include "cli/render/human.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/arming.h"
#include "cli/render/command_name.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/human_parts.h"
#include "cli/render/imported.h"
#include "cli/render/lines.h"
#include "cli/render/table.h"
#include "daemon/base/import_words.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"
#include "daemon/words/step_words.h"

namespace lull {
namespace {

// With GPU truth two columns more: of the calls in traced time, how long the device
// was busy meanwhile, and how long it idled because of them.
std::string SyncsTable(const v1::Syncs& reply, bool gpu_truth, v1::GroupBy group_by) {
  if (reply.sync_points().empty()) return "  No call blocked on the GPU.\n";
  std::vector<std::string> columns = {">blocked", ">share", ">calls"};
  if (gpu_truth) {
    columns.insert(columns.end(), {">judged", ">needed", ">wasted"});
  } else {
    columns.insert(columns.end(), {">mean", ">longest"});
  }
  columns.insert(columns.end(), {"call", "where"});
  Table table(std::move(columns));
  for (const v1::SyncPoint& point : reply.sync_points()) {
    std::vector<std::string> cells = {
        FormatDuration(point.blocked_ns()),
        FormatShare(D(point.blocked_ns()), D(reply.total_blocked_ns())),
        FormatCount(point.calls())};
    if (gpu_truth) {
      bool judged = point.judged_calls() > 0;
      cells.push_back(judged ? FormatDuration(point.judged_blocked_ns()) : "-");
      cells.push_back(judged ? FormatDuration(point.needed_ns()) : "-");
      cells.push_back(judged ? FormatDuration(point.wasted_ns()) : "-");
    } else {
      cells.push_back(Mean(point.blocked_ns(), point.calls()));
      cells.push_back(FormatDuration(point.max_ns()));
    }
    cells.push_back(Shortened(point.api(), 40));
    cells.push_back(FormatSite(point.site(), group_by));
    table.AddRow(std::move(cells));
    AddStacks(table, point, group_by);
  }
  return table.Text();
}

std::string AllocationsTable(const v1::Allocations& reply, v1::GroupBy group_by) {
  if (reply.allocation_sites().empty()) return "  No allocation was seen.\n";
  Table table({">allocated", ">calls", ">frees", ">live", ">peak", ">blocked",
               "allocator", "where"});
  for (const v1::AllocationSite& site : reply.allocation_sites()) {
    table.AddRow({Marked(site, FormatBytes(static_cast<int64_t>(site.bytes()))),
                  Marked(site, FormatCount(site.calls())),
                  Marked(site, FormatCount(site.frees())),
                  Marked(site, FormatBytes(site.live_bytes())),
                  Marked(site, FormatBytes(site.peak_bytes())),
                  FormatDuration(site.blocked_ns()), Shortened(site.allocator(), 20),
                  FormatSite(site.site(), group_by)});
    AddStacks(table, site, group_by);
  }
  return absl::StrCat(table.Text(), MarkNote(reply.allocation_sites()));
}

std::string GcTable(const v1::GcPauses& reply, v1::GroupBy group_by) {
  if (reply.gc_pauses().empty())
    return "  No pause of the garbage collector was seen.\n";
  Table table({">total", ">pauses", ">mean", ">longest", ">generation", ">collected",
               "set off at"});
  for (const v1::GcPause& pause : reply.gc_pauses()) {
    table.AddRow({FormatDuration(pause.total_ns()), FormatCount(pause.count()),
                  Mean(pause.total_ns(), pause.count()), FormatDuration(pause.max_ns()),
                  absl::StrCat(pause.generation()), FormatCount(pause.collected()),
                  FormatSite(pause.site(), group_by)});
    AddStacks(table, pause, group_by);
  }
  return table.Text();
}

// Waits for data that are not all of the time for it.
std::string DataNote(const v1::HostWaits& reply) {
  bool any =
      std::any_of(reply.host_waits().begin(), reply.host_waits().end(),
                  [](const v1::HostWait& wait) { return wait.kind() == "data"; });
  if (!any || reply.data_exact()) return "";
  return "  Data: only what blocked is known, not what the loader computed "
         "(record_function: PyTorch 1.13 to 2.15).\n";
}

std::string WaitsTable(const v1::HostWaits& reply, v1::GroupBy group_by) {
  if (reply.host_waits().empty()) return "  No wait was longer than the threshold.\n";
  Table table(
      {">waited", ">share", ">waits", ">mean", ">longest", "for", "call", "where"});
  for (const v1::HostWait& wait : reply.host_waits()) {
    table.AddRow({FormatDuration(wait.total_ns()),
                  FormatShare(D(wait.total_ns()), D(reply.total_ns())),
                  FormatCount(wait.count()), Mean(wait.total_ns(), wait.count()),
                  FormatDuration(wait.max_ns()), Shortened(wait.kind(), 12),
                  Shortened(wait.api(), 30), FormatSite(wait.site(), group_by)});
    AddStacks(table, wait, group_by);
  }
  return absl::StrCat(table.Text(), DataNote(reply));
}

std::string ProcessesTable(const v1::ReportReply& reply) {
  Table table({">pid", ">rank", ">life", ">blocked", ">data wait", ">gc", ">launches",
               "work", "command"});
  for (const v1::ProcessRow& row : reply.processes()) {
    std::vector<std::string> work;
    if (row.gpu()) work.push_back("gpu");
    if (row.torch()) work.push_back("torch");
    if (row.corrupt()) work.push_back("CORRUPT");
    table.AddRow(
        {absl::StrCat(row.pid()), row.rank() < 0 ? "-" : absl::StrCat(row.rank()),
         FormatDuration(row.duration_ns()), FormatDuration(row.blocked_ns()),
         FormatDuration(row.data_wait_ns()), FormatDuration(row.gc_ns()),
         FormatCount(row.launches()), work.empty() ? "-" : absl::StrJoin(work, "+"),
         ShortCommand(row.command(), 60)});
    if (row.run_delay_ns() * 100 > WatchedNs(row)) {
      table.AddNote(absl::StrCat("ready without a processor for ",
                                 FormatDuration(row.run_delay_ns()), "; pre-empted ",
                                 FormatCount(row.preemptions()), " times, moved ",
                                 FormatCount(row.migrations()), " times"));
    }
  }
  return table.Text();
}

std::string SyncsHeadline(const v1::Syncs& reply) {
  return absl::StrCat("Blocked on the GPU: ", FormatDuration(reply.total_blocked_ns()),
                      " in ", FormatCount(reply.total_calls()), " calls\n");
}

std::string AllocationsHeadline(const v1::Allocations& reply) {
  return absl::StrCat(
      "Allocated: ", FormatBytes(static_cast<int64_t>(reply.total_bytes())), " in ",
      FormatCount(reply.total_calls()), " allocations\n");
}

std::string GcHeadline(const v1::GcPauses& reply) {
  return absl::StrCat("Garbage collection: ", FormatDuration(reply.total_ns()), " in ",
                      FormatCount(reply.total_count()), " pauses\n");
}

std::string WaitsHeadline(const v1::HostWaits& reply) {
  return absl::StrCat("Waited on the host: ", FormatDuration(reply.total_ns()), "\n");
}

// A trace that has no pauses does not say that there were none.
std::string GcPart(const v1::ReportReply& reply, v1::GroupBy group_by) {
  const std::string unknown = CannotBeTold(reply.job().imported(), {kImportHasNoGc});
  if (reply.gc().gc_pauses().empty() && !unknown.empty()) {
    return absl::StrCat("Garbage collection: -\n", unknown);
  }
  return absl::StrCat(GcHeadline(reply.gc()), GcTable(reply.gc(), group_by));
}

// The same of waits, of which a trace has some kinds at most.
std::string WaitsPart(const v1::ReportReply& reply, v1::GroupBy group_by) {
  const std::string unknown =
      CannotBeTold(reply.job().imported(),
                   {kImportHasNoWaits, kImportHasNoGilWaits, kImportHasNoData});
  if (reply.waits().host_waits().empty() && !unknown.empty()) {
    return absl::StrCat("Waited on the host: -\n", unknown);
  }
  return absl::StrCat(WaitsHeadline(reply.waits()), WaitsTable(reply.waits(), group_by),
                      unknown);
}

std::string AdviceText(const v1::ReportReply& reply) {
  std::string text;
  for (const v1::Finding& item : reply.advice().findings()) {
    absl::StrAppend(&text, Wrapped(absl::StrCat(item.finding(), ":"), 2),
                    Wrapped(absl::StrCat(item.advice(), "."), 6));
  }
  if (!text.empty()) return text;
  text = NoAdvice(reply);
  text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
  return absl::StrCat("  ", text, ".\n");
}

std::string GpuSections(const v1::ReportReply& reply, v1::GroupBy group_by) {
  std::string text;
  if (!reply.gaps().gaps().empty()) {
    absl::StrAppend(&text, "\nIdle, by line\n",
                    GapsTable(reply.gaps(), reply.gpu(), group_by));
  }
  absl::StrAppend(&text, "\nKernels: ", FormatDuration(reply.kernels().total_ns()),
                  " in ", FormatCount(reply.kernels().total_calls()), " launches\n",
                  KernelsTable(reply.kernels(), group_by), "\nCopies and memsets\n",
                  CopiesTable(reply.kernels()), "\n", StepsHead(reply.steps()));
  return text;
}

// The word for the time in which a job records: some jobs sleep at times.
std::string RunningWord(const v1::Job& job) {
  if (IsLongWithoutAStep(job)) {
    return absl::StrCat("no step for ", FormatDuration(job.since_step_ns()));
  }
  return job.partly_recorded() ? "armed" : "running";
}

std::string DamagedLine(const v1::ListJobsReply& reply) {
  if (reply.damaged_jobs().empty()) return "";
  const bool one = reply.damaged_jobs_size() == 1;
  std::string ids;
  for (const std::string& id : reply.damaged_jobs()) {
    absl::StrAppend(&ids, ids.empty() ? "" : ", ", ShortId(id));
  }
  return absl::StrCat("Not listed: ", FormatCount(reply.damaged_jobs_size()), " job",
                      one ? "" : "s", " whose rows in the database are damaged: ", ids,
                      "\n");
}

// "node1, node2, … (64)"
std::string HostsWords(const v1::Job& job) {
  constexpr size_t kMostShown = 2;
  std::set<std::string> hosts;
  for (const v1::Job::Part& part : job.parts())
    hosts.insert(Shortened(part.host(), 30));
  if (hosts.empty()) return "-";
  const size_t all = hosts.size();
  while (hosts.size() > kMostShown) hosts.erase(std::prev(hosts.end()));
  return absl::StrCat(absl::StrJoin(hosts, ", "),
                      all > kMostShown ? absl::StrCat(", … (", all, ")") : "");
}

}  // namespace

std::string JobsText(const v1::ListJobsReply& reply) {
  if (reply.jobs().empty() && !reply.tags().empty()) {
    return absl::StrCat("No job has the ", reply.tags_size() == 1 ? "tag " : "tags ",
                        Printable(absl::StrJoin(reply.tags(), ", ")), ".\n",
                        DamagedLine(reply));
  }
  if (reply.jobs().empty() && reply.damaged_jobs().empty()) {
    return "No jobs yet. Start one with: lull run -- python train.py\n";
  }
  const bool marked = std::any_of(
      reply.jobs().begin(), reply.jobs().end(),
      [](const v1::Job& job) { return job.pinned() || !job.tags().empty(); });
  std::vector<std::string> columns = {"job",        "started", ">duration", ">exit",
                                      ">processes", ">events", "name"};
  if (marked) columns.insert(columns.end(), {"kept", "tags"});
  const bool has_parts =
      std::any_of(reply.jobs().begin(), reply.jobs().end(),
                  [](const v1::Job& job) { return !job.parts().empty(); });
  if (has_parts) columns.emplace_back("hosts");
  columns.push_back("command");
  Table table(columns);
  for (const v1::Job& job : reply.jobs()) {
    std::string exit = job.end_unseen()           ? "unseen"
                       : job.asleep()             ? "asleep"
                       : !job.ended()             ? RunningWord(job)
                       : job.has_imported()       ? "imported"
                       : job.attached()           ? "attached"
                       : !job.exit_status_known() ? "unknown"
                                                  : absl::StrCat(job.exit_status());
    // Traces without a date are imported, too.
    const uint64_t started = job.start_realtime_ns();
    std::vector<std::string> row = {
        ShortId(job.id()),
        started == 0 ? "-" : FormatUtc(started),
        FormatDuration(job.duration_ns()),
        exit,
        FormatCount(job.processes()),
        FormatCount(job.events()),
        job.name().empty() ? "-" : Shortened(job.name(), 30)};
    if (marked) {
      row.push_back(job.pinned() ? "pinned" : "-");
      row.push_back(job.tags().empty() ? "-"
                                       : Printable(absl::StrJoin(job.tags(), ", ")));
    }
    if (has_parts) row.push_back(HostsWords(job));
    row.push_back(ShortCommand(job.command(), 60));
    table.AddRow(std::move(row));
  }
  return absl::StrCat(reply.jobs().empty() ? "" : table.Text(), DamagedLine(reply));
}

std::string SyncsText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  bool truth = HasGpuTruth(reply.gpu());
  std::string text = Answer(reply, SyncsHeadline(reply.syncs()),
                            SyncsTable(reply.syncs(), truth, group_by));
  if (reply.syncs().sync_points().empty()) return text;
  if (!truth) return absl::StrCat(text, MissingLine(reply.gpu()), "\n");
  return absl::StrCat(text, CoverageLine(reply.job(), reply.gpu()),
                      "; judged, needed and wasted\nare of the calls in it.\n");
}

std::string AllocationsText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  return Answer(reply, AllocationsHeadline(reply.allocations()),
                AllocationsTable(reply.allocations(), group_by));
}

std::string GcText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  return Answer(reply, GcPart(reply, group_by), "");
}

std::string WaitsText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  return Answer(reply, WaitsPart(reply, group_by), "");
}

std::string ReportText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  bool truth = HasGpuTruth(reply.gpu());
  std::string text = absl::StrCat(Head(reply), "\n", GpuHead(reply.job(), reply.gpu()));
  for (const v1::NonFinite& first : reply.non_finite()) {
    absl::StrAppend(&text, NonFiniteLine(first), "\n");
  }
  if (truth) {
    absl::StrAppend(&text, "\nIdle: ", FormatDuration(reply.gpu().idle_ns()),
                    ", by cause\n", CausesTable(reply.gaps(), reply.gpu()),
                    ExplainedLine(reply.gpu()));
  }
  const std::string parts = PhasePartsText(reply.steps());
  if (!parts.empty()) absl::StrAppend(&text, "\n", parts);
  absl::StrAppend(&text, "\nWhat to change first\n", AdviceText(reply));
  if (truth) absl::StrAppend(&text, GpuSections(reply, group_by));
  absl::StrAppend(
      &text, "\n", SyncsHeadline(reply.syncs()),
      SyncsTable(reply.syncs(), truth, group_by), "\n", WaitsPart(reply, group_by),
      "\n", GcPart(reply, group_by), "\n", AllocationsHeadline(reply.allocations()),
      AllocationsTable(reply.allocations(), group_by), "\nProcesses\n",
      ProcessesTable(reply), "\n", LossesLine(reply.job(), reply.losses()), "\n");
  if (!reply.job().has_imported()) {
    absl::StrAppend(&text, CostLines(reply.overhead()));
    return text;
  }
  for (const std::string& line : ImportedRemarks(reply.job().imported())) {
    absl::StrAppend(&text, Wrapped(line, 0));
  }
  return text;
}

}  // namespace lull
