// The Query service: the engine's answers over gRPC.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/time/time.h"
#include "daemon/collector/serve/export_watch.h"
#include "daemon/collector/serve/fleet_desk.h"
#include "daemon/collector/serve/gate.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "query.grpc.pb.h"

namespace lull::collector {

class QueryService : public v1::Query::Service {
 public:
  // `gate`, `store` and `fleet` must outlive the service. `export_patience`: see
  // ExportWatch.
  QueryService(Gate& gate, storage::Store& store, query::HasRelay has_relay,
               FleetDesk& fleet, absl::Duration export_patience);

  grpc::Status ListJobs(grpc::ServerContext* context,
                        const v1::ListJobsRequest* request,
                        v1::ListJobsReply* reply) override;
  grpc::Status GetReport(grpc::ServerContext* context, const v1::ReportRequest* request,
                         v1::ReportReply* reply) override;
  grpc::Status GetFleet(grpc::ServerContext* context, const v1::FleetRequest* request,
                        v1::FleetReply* reply) override;
  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportPiece>* writer) override;

 private:
  Gate& gate_;
  storage::Store& store_;
  const query::HasRelay has_relay_;
  FleetDesk& fleet_;
  ExportWatch exports_;
};

}  // namespace lull::collector
