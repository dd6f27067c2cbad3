// The Query service. Each call reads one consistent state of the store, also while
// a job reports.
#pragma once

#include <grpcpp/server_context.h>

#include <functional>

#include "daemon/storage/store.h"
#include "query.grpc.pb.h"

namespace lull::query {

class QueryService : public lull::v1::Query::Service {
 public:
  // `admit` decides whether a call may go on. `store` must outlive the service.
  using Admit = std::function<grpc::Status(const grpc::ServerContextBase&)>;
  // Whether a relay reports of the job now; without one nobody will see its end.
  using HasRelay = std::function<bool(const std::string& job)>;
  QueryService(storage::Store& store, Admit admit, HasRelay has_relay);

  grpc::Status ListJobs(grpc::ServerContext* context,
                        const lull::v1::ListJobsRequest* request,
                        lull::v1::ListJobsReply* reply) override;
  grpc::Status GetSyncs(grpc::ServerContext* context,
                        const lull::v1::ReportRequest* request,
                        lull::v1::SyncsReply* reply) override;
  grpc::Status GetAllocations(grpc::ServerContext* context,
                              const lull::v1::ReportRequest* request,
                              lull::v1::AllocationsReply* reply) override;
  grpc::Status GetGcPauses(grpc::ServerContext* context,
                           const lull::v1::ReportRequest* request,
                           lull::v1::GcReply* reply) override;
  grpc::Status GetWaits(grpc::ServerContext* context,
                        const lull::v1::ReportRequest* request,
                        lull::v1::WaitsReply* reply) override;
  grpc::Status GetGaps(grpc::ServerContext* context,
                       const lull::v1::ReportRequest* request,
                       lull::v1::GapsReply* reply) override;
  grpc::Status GetKernels(grpc::ServerContext* context,
                          const lull::v1::ReportRequest* request,
                          lull::v1::KernelsReply* reply) override;
  grpc::Status GetSteps(grpc::ServerContext* context,
                        const lull::v1::ReportRequest* request,
                        lull::v1::StepsReply* reply) override;
  grpc::Status GetMemory(grpc::ServerContext* context,
                         const lull::v1::ReportRequest* request,
                         lull::v1::MemoryReply* reply) override;
  grpc::Status GetReport(grpc::ServerContext* context,
                         const lull::v1::ReportRequest* request,
                         lull::v1::ReportReply* reply) override;

 private:
  storage::Store& store_;
  const Admit admit_;
  const HasRelay has_relay_;
};

}  // namespace lull::query
