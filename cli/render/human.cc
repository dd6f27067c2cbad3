#include "cli/render/human.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/advice.h"
#include "cli/render/format.h"
#include "cli/render/lines.h"
#include "cli/render/table.h"

namespace lull {
namespace {

constexpr Table::Align kLeft = Table::Align::kLeft;
constexpr Table::Align kRight = Table::Align::kRight;

double D(uint64_t value) { return static_cast<double>(value); }

std::string Mean(uint64_t total_ns, uint64_t count) {
  return count == 0 ? "-" : FormatDuration(total_ns / count);
}

template <typename Frames>
void AddFrames(Table& table, const Frames& frames) {
  for (const v1::Frame& frame : frames) table.AddNote(FormatFrame(frame));
}

// The stacks under a row, when that is how the rows were grouped.
template <typename Row>
void AddStacks(Table& table, const Row& row, v1::GroupBy group_by) {
  if (group_by != v1::GROUP_BY_STACK) return;
  AddFrames(table, row.stack());
  if constexpr (requires { row.native_stack(); }) AddFrames(table, row.native_stack());
}

std::string SyncsTable(const v1::SyncsReply& reply, v1::GroupBy group_by) {
  if (reply.sync_points().empty()) return "  No call blocked on the GPU.\n";
  Table table({{"blocked", kRight},
               {"share", kRight},
               {"calls", kRight},
               {"mean", kRight},
               {"longest", kRight},
               {"call", kLeft},
               {"where", kLeft}});
  for (const v1::SyncPoint& point : reply.sync_points()) {
    table.AddRow({FormatDuration(point.blocked_ns()),
                  FormatShare(D(point.blocked_ns()), D(reply.total_blocked_ns())),
                  FormatCount(point.calls()), Mean(point.blocked_ns(), point.calls()),
                  FormatDuration(point.max_ns()), Shortened(point.api(), 40),
                  FormatSite(point.site(), group_by)});
    AddStacks(table, point, group_by);
  }
  return table.Text();
}

std::string AllocationsTable(const v1::AllocationsReply& reply, v1::GroupBy group_by) {
  if (reply.allocation_sites().empty()) return "  No allocation was seen.\n";
  Table table({{"allocated", kRight},
               {"calls", kRight},
               {"frees", kRight},
               {"live", kRight},
               {"peak", kRight},
               {"blocked", kRight},
               {"allocator", kLeft},
               {"where", kLeft}});
  for (const v1::AllocationSite& site : reply.allocation_sites()) {
    table.AddRow({FormatBytes(static_cast<int64_t>(site.bytes())),
                  FormatCount(site.calls()), FormatCount(site.frees()),
                  FormatBytes(site.live_bytes()), FormatBytes(site.peak_bytes()),
                  FormatDuration(site.blocked_ns()), Shortened(site.allocator(), 20),
                  FormatSite(site.site(), group_by)});
    AddStacks(table, site, group_by);
  }
  return table.Text();
}

std::string GcTable(const v1::GcReply& reply, v1::GroupBy group_by) {
  if (reply.gc_pauses().empty()) return "  The garbage collector never ran.\n";
  Table table({{"total", kRight},
               {"pauses", kRight},
               {"mean", kRight},
               {"longest", kRight},
               {"generation", kRight},
               {"collected", kRight},
               {"set off at", kLeft}});
  for (const v1::GcPause& pause : reply.gc_pauses()) {
    table.AddRow({FormatDuration(pause.total_ns()), FormatCount(pause.count()),
                  Mean(pause.total_ns(), pause.count()), FormatDuration(pause.max_ns()),
                  absl::StrCat(pause.generation()), FormatCount(pause.collected()),
                  FormatSite(pause.site(), group_by)});
    AddStacks(table, pause, group_by);
  }
  return table.Text();
}

std::string WaitsTable(const v1::WaitsReply& reply, v1::GroupBy group_by) {
  if (reply.host_waits().empty()) return "  No wait was longer than the threshold.\n";
  Table table({{"waited", kRight},
               {"share", kRight},
               {"waits", kRight},
               {"mean", kRight},
               {"longest", kRight},
               {"for", kLeft},
               {"call", kLeft},
               {"where", kLeft}});
  for (const v1::HostWait& wait : reply.host_waits()) {
    table.AddRow({FormatDuration(wait.total_ns()),
                  FormatShare(D(wait.total_ns()), D(reply.total_ns())),
                  FormatCount(wait.count()), Mean(wait.total_ns(), wait.count()),
                  FormatDuration(wait.max_ns()), Shortened(wait.kind(), 12),
                  Shortened(wait.api(), 30), FormatSite(wait.site(), group_by)});
    AddStacks(table, wait, group_by);
  }
  return table.Text();
}

std::string ProcessesTable(const v1::ReportReply& reply) {
  Table table({{"pid", kRight},
               {"rank", kRight},
               {"life", kRight},
               {"blocked", kRight},
               {"data wait", kRight},
               {"gc", kRight},
               {"launches", kRight},
               {"work", kLeft},
               {"command", kLeft}});
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
         Shortened(row.command(), 60)});
  }
  return table.Text();
}

std::string SyncsHeadline(const v1::SyncsReply& reply) {
  return absl::StrCat("Blocked on the GPU: ", FormatDuration(reply.total_blocked_ns()),
                      " in ", FormatCount(reply.total_calls()), " calls\n");
}

std::string AllocationsHeadline(const v1::AllocationsReply& reply) {
  return absl::StrCat(
      "Allocated: ", FormatBytes(static_cast<int64_t>(reply.total_bytes())), " in ",
      FormatCount(reply.total_calls()), " allocations\n");
}

std::string GcHeadline(const v1::GcReply& reply) {
  return absl::StrCat("Garbage collection: ", FormatDuration(reply.total_ns()), " in ",
                      FormatCount(reply.total_count()), " pauses\n");
}

std::string WaitsHeadline(const v1::WaitsReply& reply) {
  return absl::StrCat("Waited on the host: ", FormatDuration(reply.total_ns()), "\n");
}

// Rows that `--top` cut off are in the totals; say so instead of letting the
// reader add up and wonder.
template <typename Reply>
std::string Answer(const Reply& reply, const std::string& headline,
                   const std::string& table) {
  return absl::StrCat(JobLine(reply.job()), "\n\n", headline, table, "\n",
                      LossesLine(reply.losses()), "\n", OverheadLine(reply.overhead()),
                      "\n");
}

}  // namespace

std::string JobsText(const v1::ListJobsReply& reply) {
  if (reply.jobs().empty()) {
    return "No jobs yet. Start one with: lull run -- python train.py\n";
  }
  Table table({{"job", kLeft},
               {"started", kLeft},
               {"duration", kRight},
               {"exit", kRight},
               {"processes", kRight},
               {"events", kRight},
               {"name", kLeft},
               {"command", kLeft}});
  for (const v1::Job& job : reply.jobs()) {
    std::string exit = !job.ended()               ? "running"
                       : !job.exit_status_known() ? "unknown"
                                                  : absl::StrCat(job.exit_status());
    table.AddRow({ShortId(job.id()), FormatUtc(job.start_realtime_ns()),
                  FormatDuration(job.duration_ns()), exit, FormatCount(job.processes()),
                  FormatCount(job.events()),
                  job.name().empty() ? "-" : Shortened(job.name(), 30),
                  Shortened(job.command(), 60)});
  }
  return table.Text();
}

std::string SyncsText(const v1::SyncsReply& reply, v1::GroupBy group_by) {
  return Answer(reply, SyncsHeadline(reply), SyncsTable(reply, group_by));
}

std::string AllocationsText(const v1::AllocationsReply& reply, v1::GroupBy group_by) {
  return Answer(reply, AllocationsHeadline(reply), AllocationsTable(reply, group_by));
}

std::string GcText(const v1::GcReply& reply, v1::GroupBy group_by) {
  return Answer(reply, GcHeadline(reply), GcTable(reply, group_by));
}

std::string WaitsText(const v1::WaitsReply& reply, v1::GroupBy group_by) {
  return Answer(reply, WaitsHeadline(reply), WaitsTable(reply, group_by));
}

std::string ReportText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  std::string text = absl::StrCat(
      JobLine(reply.job()), "\n\n", SyncsHeadline(reply.syncs()),
      SyncsTable(reply.syncs(), group_by), "\n", WaitsHeadline(reply.waits()),
      WaitsTable(reply.waits(), group_by), "\n", GcHeadline(reply.gc()),
      GcTable(reply.gc(), group_by), "\n", AllocationsHeadline(reply.allocations()),
      AllocationsTable(reply.allocations(), group_by), "\nProcesses\n",
      ProcessesTable(reply), "\nWhat to change first\n");
  std::vector<Advice> advice = WhatToChangeFirst(reply);
  if (advice.empty())
    absl::StrAppend(&text, "  Nothing stands out in what was measured.\n");
  for (const Advice& item : advice) {
    absl::StrAppend(&text, "  ", item.finding, ":\n      ", item.advice, ".\n");
  }
  absl::StrAppend(&text, "\nGPU idle time is not measured in this version.\n",
                  LossesLine(reply.losses()), "\n", OverheadLine(reply.overhead()),
                  "\n");
  return text;
}

}  // namespace lull
