#include "daemon/collector/serve/query_service.h"

#include <utility>

#include "daemon/collector/serve/grpc_status.h"

namespace lull::collector {

QueryService::QueryService(storage::Store& store, Admit admit,
                           query::HasRelay has_relay)
    : store_(store), admit_(std::move(admit)), has_relay_(std::move(has_relay)) {}

grpc::Status QueryService::ListJobs(grpc::ServerContext* context,
                                    const lull::v1::ListJobsRequest* request,
                                    lull::v1::ListJobsReply* reply) {
  grpc::Status admitted = admit_(*context);
  return admitted.ok() ? ToGrpc(query::ListJobs(store_, has_relay_, *request, reply))
                       : admitted;
}

grpc::Status QueryService::GetReport(grpc::ServerContext* context,
                                     const lull::v1::ReportRequest* request,
                                     lull::v1::ReportReply* reply) {
  grpc::Status admitted = admit_(*context);
  return admitted.ok() ? ToGrpc(query::Report(store_, has_relay_, *request, reply))
                       : admitted;
}

}  // namespace lull::collector
