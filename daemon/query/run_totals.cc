#include "daemon/query/run_totals.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/aggregate/control_step.h"
#include "daemon/base/status.h"
#include "daemon/query/gpu.h"
#include "daemon/query/names.h"
#include "daemon/query/region_filter.h"
#include "daemon/query/reports.h"
#include "daemon/query/stacks.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

absl::Status CountSteps(const storage::StoreReader& reader, const ProcessSums& sums,
                        StepTotals* steps) {
  LULL_ASSIGN_OR_RETURN(auto newest, reader.catalogue().Steps(sums.process.id, 0,
                                                              aggregate::kForever, 1));
  if (newest.empty()) return absl::OkStatus();
  const v1::StepSource source = newest.front().source;
  if (source == v1::STEP_SOURCE_NONE || source == v1::STEP_SOURCE_PERIOD) {
    steps->count += newest.front().number;  // we number those from 1
    return absl::OkStatus();
  }
  steps->timed = true;
  sums.ForEach([&](const Series& series, const Cell& cell) {
    if (series.type != EventType::kStep ||
        (series.variant & ~aggregate::kVariantControlStep) != source) {
      return;
    }
    steps->count += cell.count;
    steps->total_ns += cell.total_ns;
  });
  return absl::OkStatus();
}

uint64_t BeforeTracing(const ProcessSums& sums) {
  for (const storage::TracingRow& row : sums.tracing) {
    if (row.state == v1::TRACING_STATE_OFF) continue;
    return sums.recorded.Within(sums.process.info.start_ns(), row.start_ns);
  }
  return 0;
}

// `view` with the processes of one rank.
absl::Status FillRank(View& view, RankTotals* out) {
  v1::ReportReply& reply = out->reply;
  FillGpu(view, reply.mutable_gpu());
  reply.mutable_gpu()->clear_spans();
  RegionFilter everywhere("", *view.names);
  FillCauses(view, everywhere, reply.mutable_gaps());
  LULL_RETURN_IF_ERROR(FillMemory(view, &reply));
  FillDevices(view, &reply);
  FillOverhead(view.job, view.processes, reply.mutable_overhead());
  reply.set_launches(CountLaunches(view.processes));
  out->waits = WaitsByKind(view.processes);
  int device = 0;  // FillDevices() has them in the order of processes
  for (const ProcessSums& sums : view.processes) {
    FillProcess(view.job, sums, reply.add_processes());
    uint32_t& traced = out->traced_devices.emplace_back();
    for (size_t i = 0; i < sums.devices.size(); ++i) {
      if (reply.devices(device++).traced_ns() > 0) ++traced;
    }
    out->before_tracing_ns.push_back(BeforeTracing(sums));
    LULL_RETURN_IF_ERROR(CountSteps(*view.reader, sums, &out->steps));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunTotals> TotalsOfRun(storage::Store& store, const HasRelay& has_relay,
                                      const std::string& id, size_t most_ranks) {
  View view;
  view.overview = true;  // of memory, totals alone
  LULL_ASSIGN_OR_RETURN(view.reader, store.NewReader());
  view.run_parts = std::make_unique<RunParts>(*view.reader, has_relay);
  LULL_ASSIGN_OR_RETURN(auto jobs, view.reader->catalogue().FindJob(id));
  if (jobs.empty()) return absl::NotFoundError(absl::StrCat("no job ", id));
  view.job = std::move(jobs.front());
  view.names = std::make_unique<Names>(*view.reader, view.job.id);
  view.stacks = std::make_unique<Stacks>(*view.reader, view.job.id);
  LULL_ASSIGN_OR_RETURN(auto processes,
                        view.reader->catalogue().All<storage::ProcessRow>(view.job.id));
  std::map<int32_t, std::vector<storage::ProcessRow>> by_rank;
  for (storage::ProcessRow& process : SelectProcesses(processes, view.request)) {
    // Nothing is known of a rank below 0, however a relay writes that.
    by_rank[std::max(process.info.rank(), -1)].push_back(std::move(process));
  }

  RunTotals totals;
  for (const auto& [rank, rows] : by_rank) {
    if (totals.ranks.size() == most_ranks) {
      totals.ranks_left_out = by_rank.size() - most_ranks;
      break;
    }
    view.processes.clear();
    for (const storage::ProcessRow& row : rows) {
      LULL_ASSIGN_OR_RETURN(ProcessSums sums,
                            LoadSums(*view.reader, view.job, row, TimeRange()));
      view.processes.push_back(std::move(sums));
    }
    RankTotals& one = totals.ranks.emplace_back();
    one.rank = rank;
    LULL_RETURN_IF_ERROR(FillRank(view, &one));
  }
  LULL_RETURN_IF_ERROR(view.names->status());
  FillOverhead(view.job, {}, &totals.overhead);
  LULL_RETURN_IF_ERROR(
      FillLosses(*view.reader, view.job, view.request, &totals.losses));
  LULL_RETURN_IF_ERROR(FillJob(*view.run_parts, view.job, &totals.job));
  return totals;
}

}  // namespace lull::query
