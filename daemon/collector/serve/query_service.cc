#include "daemon/collector/serve/query_service.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "daemon/collector/serve/grpc_status.h"
#include "daemon/collector/serve/whereabouts.h"
#include "daemon/export/export.h"

namespace lull::collector {

QueryService::QueryService(Gate& gate, storage::Store& store, query::HasRelay has_relay,
                           FleetDesk& fleet, absl::Duration export_patience)
    : gate_(gate),
      store_(store),
      has_relay_(std::move(has_relay)),
      fleet_(fleet),
      exports_(export_patience) {}

grpc::Status QueryService::ListJobs(grpc::ServerContext* context,
                                    const lull::v1::ListJobsRequest* request,
                                    lull::v1::ListJobsReply* reply) {
  grpc::Status admitted = gate_.Check(*context, Right::kRead);
  return admitted.ok() ? ToGrpc(query::ListJobs(store_, has_relay_, *request, reply))
                       : admitted;
}

grpc::Status QueryService::GetReport(grpc::ServerContext* context,
                                     const lull::v1::ReportRequest* request,
                                     lull::v1::ReportReply* reply) {
  grpc::Status admitted = gate_.Check(*context, Right::kRead);
  if (!admitted.ok()) return admitted;
  return WithWhereabouts(query::Report(store_, has_relay_, *request, reply),
                         request->job(), store_, fleet_, context);
}

grpc::Status QueryService::GetFleet(grpc::ServerContext* context,
                                    const lull::v1::FleetRequest* request,
                                    lull::v1::FleetReply* reply) {
  grpc::Status admitted = gate_.Check(*context, Right::kRead);
  if (!admitted.ok()) return admitted;
  // A private collector stays for as long as it takes.
  gate_.StreamOpened();
  absl::Cleanup closed = [this] { gate_.StreamClosed(); };
  return ToGrpc(fleet_.Answer(
      *request, [context] { return context->IsCancelled(); }, reply));
}

grpc::Status QueryService::Export(grpc::ServerContext* context,
                                  const lull::v1::ExportRequest* request,
                                  grpc::ServerWriter<lull::v1::ExportPiece>* writer) {
  grpc::Status admitted = gate_.Check(*context, Right::kRead);
  if (!admitted.ok()) return admitted;
  ExportWatch::Ticket ticket(&exports_, context);
  if (!ticket.admitted()) {
    return grpc::Status(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat(ExportWatch::kMost, " exports are under way; ask again later"));
  }
  // A private collector stays for as long as it takes.
  gate_.StreamOpened();
  absl::Cleanup closed = [this] { gate_.StreamClosed(); };
  lull::v1::ExportPiece piece;
  auto send = [&](absl::string_view bytes, double done) {
    piece.set_data(bytes.data(), bytes.size());
    piece.set_done(done);
    ticket.SetWriting(true);
    const bool taken = writer->Write(piece);
    ticket.SetWriting(false);
    return taken ? absl::OkStatus()
                 : absl::CancelledError("whoever asked does not read any more");
  };
  return WithWhereabouts(exports::Export(store_, *request, send), request->job(),
                         store_, fleet_, context);
}

}  // namespace lull::collector
