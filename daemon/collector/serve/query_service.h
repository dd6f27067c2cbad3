// The Query service: the engine's answers over gRPC.
#pragma once

#include <grpcpp/server_context.h>

#include <functional>

#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "query.grpc.pb.h"

namespace lull::collector {

class QueryService : public lull::v1::Query::Service {
 public:
  // `admit` decides whether a call may go on. `store` must outlive the service.
  using Admit = std::function<grpc::Status(const grpc::ServerContextBase&)>;
  QueryService(storage::Store& store, Admit admit, query::HasRelay has_relay);

  grpc::Status ListJobs(grpc::ServerContext* context,
                        const lull::v1::ListJobsRequest* request,
                        lull::v1::ListJobsReply* reply) override;
  grpc::Status GetReport(grpc::ServerContext* context,
                         const lull::v1::ReportRequest* request,
                         lull::v1::ReportReply* reply) override;

 private:
  storage::Store& store_;
  const Admit admit_;
  const query::HasRelay has_relay_;
};

}  // namespace lull::collector
