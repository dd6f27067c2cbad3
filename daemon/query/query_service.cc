#include "daemon/query/query_service.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/query/gaps.h"
#include "daemon/query/gpu.h"
#include "daemon/query/grpc_status.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/kernels.h"
#include "daemon/query/memory.h"
#include "daemon/query/names.h"
#include "daemon/query/report.h"
#include "daemon/query/reports.h"
#include "daemon/query/steps.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using lull::v1::ReportRequest;
using HasRelay = QueryService::HasRelay;

constexpr uint32_t kStepsOfAReport = 5;

// What every report starts from.
struct View {
  std::unique_ptr<storage::StoreReader> reader;
  storage::JobRow job;
  TimeRange range;
  std::vector<ProcessSums> processes;
};

absl::StatusOr<View> Load(storage::Store& store, const ReportRequest& request) {
  View view;
  view.range = RangeOf(request);
  if (view.range.since > view.range.until) {
    return absl::InvalidArgumentError("the end of the range lies before its start");
  }
  LULL_ASSIGN_OR_RETURN(view.reader, store.NewReader());
  LULL_ASSIGN_OR_RETURN(view.job, FindJob(*view.reader, request.job()));
  LULL_ASSIGN_OR_RETURN(auto all, view.reader->Processes(view.job.id));
  for (const storage::ProcessRow& process : SelectProcesses(all, request)) {
    LULL_ASSIGN_OR_RETURN(ProcessSums sums,
                          LoadSums(*view.reader, view.job, process, view.range));
    view.processes.push_back(std::move(sums));
  }
  if (view.processes.empty() && (request.has_pid() || request.has_rank())) {
    return absl::NotFoundError("no process of this job has that rank or pid");
  }
  return view;
}

// The parts that all replies share.
template <typename Reply>
absl::Status FillCommon(const View& view, const ReportRequest& request,
                        const HasRelay& has_relay, Reply* reply) {
  LULL_RETURN_IF_ERROR(
      FillLosses(*view.reader, view.job, request, reply->mutable_losses()));
  FillOverhead(view.job, view.processes, reply->mutable_overhead());
  return FillJob(*view.reader, view.job, has_relay(view.job.uuid),
                 reply->mutable_job());
}

// One report: load, fill the rows, then what is common. `fill` may return a status.
template <typename Reply, typename Fill>
grpc::Status Answer(storage::Store& store, const HasRelay& has_relay,
                    const grpc::Status& admitted, const ReportRequest& request,
                    Reply* reply, Fill fill) {
  if (!admitted.ok()) return admitted;
  absl::StatusOr<View> view = Load(store, request);
  if (!view.ok()) return ToGrpc(view.status());
  Names names(*view->reader, view->job.id);
  if constexpr (std::is_void_v<decltype(fill(*view, names))>) {
    fill(*view, names);
  } else {
    absl::Status filled = fill(*view, names);
    if (!filled.ok()) return ToGrpc(filled);
  }
  if (!names.status().ok()) return ToGrpc(names.status());
  return ToGrpc(FillCommon(*view, request, has_relay, reply));
}

}  // namespace

QueryService::QueryService(storage::Store& store, Admit admit, HasRelay has_relay)
    : store_(store), admit_(std::move(admit)), has_relay_(std::move(has_relay)) {}

grpc::Status QueryService::ListJobs(grpc::ServerContext* context,
                                    const lull::v1::ListJobsRequest* request,
                                    lull::v1::ListJobsReply* reply) {
  grpc::Status admitted = admit_(*context);
  if (!admitted.ok()) return admitted;
  auto list = [&]() -> absl::Status {
    LULL_ASSIGN_OR_RETURN(auto reader, store_.NewReader());
    LULL_ASSIGN_OR_RETURN(auto jobs, reader->Jobs(request->limit()));
    for (const storage::JobRow& job : jobs) {
      LULL_RETURN_IF_ERROR(
          FillJob(*reader, job, has_relay_(job.uuid), reply->add_jobs()));
    }
    return absl::OkStatus();
  };
  return ToGrpc(list());
}

grpc::Status QueryService::GetSyncs(grpc::ServerContext* context,
                                    const ReportRequest* request,
                                    lull::v1::SyncsReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillSyncs(view.processes, *request, names, reply);
                  FillGpu(view.job, view.processes, view.range, names,
                          reply->mutable_gpu());
                });
}

grpc::Status QueryService::GetAllocations(grpc::ServerContext* context,
                                          const ReportRequest* request,
                                          lull::v1::AllocationsReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillAllocations(view.processes, *request, names, reply);
                });
}

grpc::Status QueryService::GetGcPauses(grpc::ServerContext* context,
                                       const ReportRequest* request,
                                       lull::v1::GcReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillGc(view.processes, *request, names, reply);
                });
}

grpc::Status QueryService::GetWaits(grpc::ServerContext* context,
                                    const ReportRequest* request,
                                    lull::v1::WaitsReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillWaits(view.processes, *request, names, reply);
                });
}

grpc::Status QueryService::GetGaps(grpc::ServerContext* context,
                                   const ReportRequest* request,
                                   lull::v1::GapsReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillGaps(view.processes, *request, names, reply);
                  FillGpu(view.job, view.processes, view.range, names,
                          reply->mutable_gpu());
                });
}

grpc::Status QueryService::GetKernels(grpc::ServerContext* context,
                                      const ReportRequest* request,
                                      lull::v1::KernelsReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillKernels(view.processes, *request, names, reply);
                  FillGpu(view.job, view.processes, view.range, names,
                          reply->mutable_gpu());
                });
}

grpc::Status QueryService::GetSteps(grpc::ServerContext* context,
                                    const ReportRequest* request,
                                    lull::v1::StepsReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  FillGpu(view.job, view.processes, view.range, names,
                          reply->mutable_gpu());
                  return FillSteps(*view.reader, view.job, view.processes, view.range,
                                   request->top(), names, reply);
                });
}

grpc::Status QueryService::GetMemory(grpc::ServerContext* context,
                                     const ReportRequest* request,
                                     lull::v1::MemoryReply* reply) {
  return Answer(store_, has_relay_, admit_(*context), *request, reply,
                [&](const View& view, Names& names) {
                  return FillMemory(*view.reader, view.job, view.processes, *request,
                                    MemoryDetail::kAll, names, reply);
                });
}

grpc::Status QueryService::GetReport(grpc::ServerContext* context,
                                     const ReportRequest* request,
                                     lull::v1::ReportReply* reply) {
  return Answer(
      store_, has_relay_, admit_(*context), *request, reply,
      [&](const View& view, Names& names) -> absl::Status {
        FillReport(view.job, view.processes, *request, names, reply);
        LULL_RETURN_IF_ERROR(FillSteps(*view.reader, view.job, view.processes,
                                       view.range, kStepsOfAReport, names,
                                       reply->mutable_steps()));
        LULL_RETURN_IF_ERROR(FillCollectionsInSteps(
            *view.reader, view.job, view.processes, view.range, reply->mutable_gc()));
        return FillMemory(*view.reader, view.job, view.processes, *request,
                          MemoryDetail::kTotals, names, reply->mutable_memory());
      });
}

}  // namespace lull::query
