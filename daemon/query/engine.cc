#include "daemon/query/engine.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/advice/advice.h"
#include "daemon/base/status.h"
#include "daemon/base/tags.h"
#include "daemon/query/gpu.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/late_looks.h"
#include "daemon/query/names.h"
#include "daemon/query/phases.h"
#include "daemon/query/region_filter.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"
#include "daemon/query/run_parts.h"
#include "daemon/query/sections.h"
#include "daemon/query/sources.h"
#include "daemon/query/stacks.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using v1::ReportReply;
using v1::ReportRequest;

// The advice of an overview looks at so many rows of each section at least, so that it
// does not depend on how many are asked for.
constexpr uint32_t kRowsForAdvice = 100;

using SteadyTimes = std::vector<std::optional<uint64_t>>;  // by process

// Sets the phase of the view, and says when each process was in its steady state.
absl::StatusOr<SteadyTimes> ChoosePhase(
    const std::vector<storage::ProcessRow>& processes, View& view) {
  const v1::Phase wanted = view.request.phase();
  SteadyTimes steady(processes.size());
  // A profile is of a part of a job that somebody chose: all of it counts.
  if (wanted == v1::PHASE_ALL ||
      (wanted == v1::PHASE_UNSPECIFIED && view.job.info.has_imported())) {
    return steady;
  }
  if (!v1::Phase_IsValid(wanted)) {
    return absl::InvalidArgumentError("this collector does not know that phase");
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    LULL_ASSIGN_OR_RETURN(steady[i], SteadySince(*view.reader, view.job, processes[i],
                                                 EndOf(view.job, processes[i])));
    view.setup_ns = std::max(view.setup_ns, steady[i].value_or(0));
  }
  if (wanted != v1::PHASE_UNSPECIFIED) {
    if (view.setup_ns == 0) {
      return absl::FailedPreconditionError(
          "set-up cannot be told from the steady state: no process marks ten steps or "
          "more, or the job is too short; use --since and --until");
    }
    view.phase = wanted;
  } else if (view.setup_ns != 0 && view.range.all()) {
    view.phase = v1::PHASE_STEADY;
  }
  return steady;
}

absl::StatusOr<View> Load(storage::Store& store, const HasRelay& has_relay,
                          const ReportRequest& request) {
  View view;
  view.request = request;
  view.overview = request.sections().empty();
  view.range = RangeOf(request);
  if (view.range.since > view.range.until) {
    return absl::InvalidArgumentError("the end of the range lies before its start");
  }
  LULL_ASSIGN_OR_RETURN(view.reader, store.NewReader());
  LULL_ASSIGN_OR_RETURN(view.job, FindJob(*view.reader, request.job()));
  view.run_parts = std::make_unique<RunParts>(*view.reader, has_relay);
  if (request.has_rank()) {
    LULL_ASSIGN_OR_RETURN(view.job, view.run_parts->WithRank(view.job, request.rank()));
  }
  LULL_ASSIGN_OR_RETURN(auto all,
                        view.reader->catalogue().All<storage::ProcessRow>(view.job.id));
  auto selected = SelectProcesses(all, request);
  LULL_ASSIGN_OR_RETURN(auto steady, ChoosePhase(selected, view));
  for (size_t i = 0; i < selected.size(); ++i) {
    TimeRange range = PhaseOf(view, steady[i]);
    LULL_ASSIGN_OR_RETURN(ProcessSums sums,
                          LoadSums(*view.reader, view.job, selected[i], range));
    view.processes.push_back(std::move(sums));
  }
  if (view.processes.empty() && (request.has_pid() || request.has_rank())) {
    return absl::NotFoundError("no process of this job has that rank or pid");
  }
  view.names = std::make_unique<Names>(*view.reader, view.job.id);
  view.stacks = std::make_unique<Stacks>(*view.reader, view.job.id);
  if (!request.region().empty() &&
      !RegionFilter(request.region(), *view.names).HoldsAny(view.processes)) {
    return absl::NotFoundError(
        absl::StrCat("no region of this job is called ", request.region(),
                     " (one is known when it ends); lull regions lists them"));
  }
  if (view.overview && request.top() > 0) {
    view.request.set_top(std::max(request.top(), kRowsForAdvice));
  }
  return view;
}

// Made of the same view as the overview.
absl::Status FillDetails(View& view, ReportReply* reply) {
  const ReportRequest asked = view.request;
  view.overview = false;
  for (const ReportRequest::Detail& detail : asked.details()) {
    view.request.set_group_by(detail.group_by());
    view.request.set_top(detail.top());
    ReportReply* part = reply->add_details();
    const absl::Status status = FillSection(detail.section(), view, part);
    if (absl::IsFailedPrecondition(status)) {  // this job has none of it
      part->set_untold(std::string(status.message()));
    } else {
      LULL_RETURN_IF_ERROR(status);
      LULL_RETURN_IF_ERROR(WidenForLateLooks(view, part));
    }
  }
  view.request = asked;
  return absl::OkStatus();
}

// What every reply has, and the overview has said.
void FillCommonParts(ReportReply* reply) {
  for (ReportReply& detail : *reply->mutable_details()) {
    *detail.mutable_job() = reply->job();
    *detail.mutable_losses() = reply->losses();
    *detail.mutable_overhead() = reply->overhead();
    *detail.mutable_gpu() = reply->gpu();
    detail.mutable_gpu()->clear_spans();
    detail.set_phase(reply->phase());
    detail.set_setup_ns(reply->setup_ns());
  }
}

void CutRows(uint32_t top, ReportReply* reply) {
  Cut(top, reply->mutable_syncs()->mutable_sync_points());
  Cut(top, reply->mutable_allocations()->mutable_allocation_sites());
  Cut(top, reply->mutable_gc()->mutable_gc_pauses());
  Cut(top, reply->mutable_waits()->mutable_host_waits());
  Cut(top, reply->mutable_gaps()->mutable_gaps());
  Cut(top, reply->mutable_kernels()->mutable_kernels());
}

void FillOverview(uint32_t top, View& view, ReportReply* reply) {
  for (const ProcessSums& sums : view.processes) {
    FillProcess(view.job, sums, reply->add_processes());
  }
  reply->set_launches(CountLaunches(view.processes));
  FillDevices(view, reply);
  FillNonFinite(view, reply);
  *reply->mutable_shares() = SharesOf(*reply);
  *reply->mutable_advice() = WhatToChangeFirst(*reply);
  CutRows(top, reply);
}

bool IsTagged(const v1::ListJobsRequest& request, const storage::JobRow& job) {
  const auto& has = job.marks.tags();
  return std::all_of(request.tags().begin(), request.tags().end(),
                     [&has](const std::string& tag) {
                       return std::find(has.begin(), has.end(), tag) != has.end();
                     });
}

void KeepTagged(const v1::ListJobsRequest& request,
                std::vector<storage::JobRow>* jobs) {
  std::erase_if(*jobs, [&](const auto& job) { return !IsTagged(request, job); });
  if (request.limit() > 0 && jobs->size() > request.limit()) {
    jobs->resize(request.limit());
  }
}

bool HasRuns(const std::vector<storage::JobRow>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(),
                     [](const storage::JobRow& job) { return !job.run.empty(); });
}

// Of the parts of a job one stays, the one that began first.
absl::Status KeepFirstParts(RunParts& run_parts, std::vector<storage::JobRow>* jobs) {
  absl::flat_hash_set<int64_t> others;
  absl::flat_hash_set<int64_t> seen;
  for (const storage::JobRow& job : *jobs) {
    if (job.run.empty() || seen.contains(job.id)) continue;
    LULL_ASSIGN_OR_RETURN(auto parts, run_parts.Of(job));
    for (const storage::JobRow& part : parts) {
      seen.insert(part.id);
      if (part.id != parts.front().id) others.insert(part.id);
    }
  }
  std::erase_if(*jobs, [&](const auto& job) { return others.contains(job.id); });
  return absl::OkStatus();
}

}  // namespace

absl::Status ListJobs(storage::Store& store, const HasRelay& has_relay,
                      const v1::ListJobsRequest& request, v1::ListJobsReply* reply) {
  if (request.tags_size() > kMaxTags) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job has ", kMaxTags, " tags at most"));
  }
  LULL_ASSIGN_OR_RETURN(auto reader, store.NewReader());
  std::vector<storage::JobRow> damaged;
  const bool all = request.tags().empty();
  LULL_ASSIGN_OR_RETURN(auto jobs,
                        reader->catalogue().Jobs(all ? request.limit() : 0, &damaged));
  if (all && HasRuns(jobs) && request.limit() > 0) {  // of which fewer jobs may be left
    damaged.clear();
    LULL_ASSIGN_OR_RETURN(jobs, reader->catalogue().Jobs(0, &damaged));
  }
  RunParts run_parts(*reader, has_relay);
  LULL_RETURN_IF_ERROR(KeepFirstParts(run_parts, &jobs));
  *reply->mutable_tags() = request.tags();
  KeepTagged(request, &jobs);
  for (const storage::JobRow& job : damaged) {
    // Where its tags cannot be read either, it is listed among all jobs alone.
    if (IsTagged(request, job)) reply->add_damaged_jobs(job.info.id());
  }
  for (const storage::JobRow& job : jobs) {
    v1::Job filled;
    absl::Status status = FillJob(run_parts, job, &filled);
    if (absl::IsDataLoss(status)) {
      reply->add_damaged_jobs(job.info.id());
      continue;
    }
    LULL_RETURN_IF_ERROR(status);
    *reply->add_jobs() = std::move(filled);
  }
  return absl::OkStatus();
}

absl::Status Report(storage::Store& store, const HasRelay& has_relay,
                    const ReportRequest& request, ReportReply* reply) {
  LULL_ASSIGN_OR_RETURN(View view, Load(store, has_relay, request));
  FillGpu(view, reply->mutable_gpu());
  reply->mutable_gpu()->set_explained_ns(ExplainedNs(view));
  LULL_RETURN_IF_ERROR(FillSections(view, reply));
  if (view.overview) {
    FillOverview(request.top(), view, reply);
    LULL_RETURN_IF_ERROR(FillDetails(view, reply));
  }
  reply->set_phase(view.phase);
  reply->set_setup_ns(view.setup_ns);
  LULL_RETURN_IF_ERROR(view.names->status());
  LULL_RETURN_IF_ERROR(view.stacks->status());
  LULL_RETURN_IF_ERROR(
      FillLosses(*view.reader, view.job, request, reply->mutable_losses()));
  FillOverhead(view.job, view.processes, reply->mutable_overhead());
  if (!view.job.info.has_imported()) {  // of a trace nobody knows it
    LULL_RETURN_IF_ERROR(FillStepCost(*view.reader, view.job, view.processes,
                                      reply->mutable_overhead()));
  }
  LULL_RETURN_IF_ERROR(FillJob(*view.run_parts, view.job, reply->mutable_job()));
  FillCommonParts(reply);
  LULL_RETURN_IF_ERROR(FillSources(view, reply));
  return absl::OkStatus();
}

}  // namespace lull::query
