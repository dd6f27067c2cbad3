#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/memory_words.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

std::string LoadersTable(const v1::DataLoading& reply, v1::GroupBy group_by) {
  if (reply.loaders().empty()) {
    return "  No batch of a DataLoader was seen (PyTorch 1.13 to 2.15 tell of them).\n";
  }
  Table table(
      {">waited", ">calls", ">mean", ">longest", ">blocked", "loader", "where"});
  for (const v1::LoaderRow& row : reply.loaders()) {
    table.AddRow({FormatDuration(row.total_ns()), FormatCount(row.calls()),
                  Mean(row.total_ns(), row.calls()), FormatDuration(row.max_ns()),
                  row.blocked_ns() > row.total_ns()
                      ? "-"
                      : FormatShare(D(row.blocked_ns()), D(row.total_ns())),
                  Shortened(row.loader(), 32), FormatSite(row.site(), group_by)});
  }
  return table.Text();
}

// "3 workers, 2.4 of them busy on average (95 % of the time 2.9 or less)"
std::string WorkersWords(const v1::LoaderWorkers& workers) {
  std::string text = Counted(workers.workers(), "worker");
  if (workers.owners() > 1) {
    absl::StrAppend(&text, " of ", workers.owners(), " processes");
  }
  absl::StrAppend(&text, workers.workers() == 1 ? "" : " at once");
  if (workers.has_busy()) {
    absl::StrAppend(&text, ", busy for ", FormatSampled(workers.busy()),
                    " of the time");
  }
  if (workers.busy_mean() > 0) {
    absl::StrAppend(&text,
                    absl::StrFormat(", %.1f of them on average", workers.busy_mean()));
  }
  if (workers.busy_95() > 0) {
    absl::StrAppend(&text, absl::StrFormat(" and %.1f or less for 95 %% of the time",
                                           workers.busy_95()));
  }
  return text;
}

std::string EnoughWords(const v1::LoaderWorkers& workers) {
  if (!workers.no_estimate().empty()) {
    return absl::StrCat("How many would be enough is not known: ",
                        workers.no_estimate());
  }
  return absl::StrFormat(
      "%d%s would keep up with the training (%.1f busy, %.1f to %.1f), where there are "
      "processors for them",
      static_cast<int>(std::ceil(workers.enough_high())),
      workers.owners() > 1 ? " for each process" : "", workers.enough(),
      workers.enough_low(), workers.enough_high());
}

std::string WorkersText(const v1::DataLoading& data) {
  if (!data.has_workers()) return "";
  const v1::LoaderWorkers& workers = data.workers();
  return absl::StrCat(
      "\n",
      Wrapped(absl::StrCat(WorkersWords(workers), ". ", EnoughWords(workers), "."), 0));
}

std::string PerBatchText(uint64_t ns, uint64_t batches) {
  return batches > 0 ? FormatDuration(ns / batches) : "-";
}

void AddPartRows(const google::protobuf::RepeatedPtrField<v1::LoaderPartRow>& rows,
                 v1::HostSampleRole role, uint64_t batches, Table* table) {
  for (const v1::LoaderPartRow& row : rows) {
    table->AddRow({row.has_share() ? FormatSampled(row.share()) : "-",
                   PerBatchText(row.time_ns(), batches), FormatCount(row.samples()),
                   RoleKey(role), LoaderPartWords(row.part())});
  }
}

std::string CostsText(const v1::DataLoading& data, v1::GroupBy group_by) {
  if (data.lines().empty()) return "";
  Table parts({">share", ">per batch", ">samples", "threads", "for"});
  AddPartRows(data.workers().parts(), v1::HOST_SAMPLE_ROLE_LOADER, data.batches(),
              &parts);
  AddPartRows(data.parts(), v1::HOST_SAMPLE_ROLE_MAIN, data.own_batches(), &parts);
  Table lines({">share", ">own", ">per batch", ">samples", "threads", "where"});
  for (const v1::LoaderLine& line : data.lines()) {
    std::string where = FormatSite(line.site(), group_by);
    if (line.has_callee()) {
      absl::StrAppend(&where, " → ", FormatSite(line.callee(), group_by));
    }
    lines.AddRow({line.has_total() ? FormatSampled(line.total()) : "-",
                  line.has_own() ? FormatShare(line.own().percent(), 100) : "-",
                  PerBatchText(line.total_ns(), BatchesOf(line, data)),
                  FormatCount(line.samples()), RoleKey(line.role()), where});
  }
  return absl::StrCat(
      "\nWhat a batch costs, by samples of the threads that load; ± is the 95 % "
      "interval\n",
      parts.Text(), "\n", lines.Text());
}

}  // namespace

std::string DataText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  const v1::DataLoading& data = reply.data();
  return Answer(reply, "In __next__ of DataLoaders; what did not block was computed\n",
                absl::StrCat(LoadersTable(data, group_by), WorkersText(data),
                             CostsText(data, group_by)));
}

}  // namespace lull
