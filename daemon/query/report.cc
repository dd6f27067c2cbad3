#include "daemon/query/report.h"

#include "daemon/query/gaps.h"
#include "daemon/query/gpu.h"
#include "daemon/query/kernels.h"
#include "daemon/query/reports.h"
#include "daemon/query/totals.h"

namespace lull::query {

void FillReport(const storage::JobRow& job, const std::vector<ProcessSums>& processes,
                const lull::v1::ReportRequest& request, Names& names,
                lull::v1::ReportReply* reply) {
  FillSyncs(processes, request, names, reply->mutable_syncs());
  FillAllocations(processes, request, names, reply->mutable_allocations());
  FillGc(processes, request, names, reply->mutable_gc());
  FillWaits(processes, request, names, reply->mutable_waits());
  for (const ProcessSums& sums : processes) {
    FillProcess(job, sums, reply->add_processes());
  }
  reply->set_launches(CountLaunches(processes));
  FillGpu(job, processes, RangeOf(request), names, reply->mutable_gpu());
  FillGaps(processes, request, names, reply->mutable_gaps());
  FillKernels(processes, request, names, reply->mutable_kernels());
  FillDevices(processes, reply->mutable_devices());
  FillNonFinite(job, processes, names, reply->mutable_non_finite());
}

}  // namespace lull::query
