#include "daemon/collector/serve/whereabouts.h"

#include "absl/strings/str_cat.h"
#include "daemon/collector/serve/grpc_status.h"
#include "daemon/query/job_lookup.h"
#include "query.pb.h"

namespace lull::collector {

grpc::Status WithWhereabouts(const absl::Status& status, const std::string& job,
                             storage::Store& store, FleetDesk& fleet,
                             grpc::ServerContext* context) {
  if (!absl::IsNotFound(status)) return ToGrpc(status);
  auto reader = store.NewReader();
  // Otherwise the job is here, but not the process that was asked for.
  if (!reader.ok() || !absl::IsNotFound(query::FindJob(**reader, job).status())) {
    return ToGrpc(status);
  }
  const auto found = fleet.Find(job, [context] { return context->IsCancelled(); });
  if (absl::IsInvalidArgument(found.status())) return ToGrpc(found.status());
  if (!found.ok()) {
    return ToGrpc(absl::NotFoundError(
        absl::StrCat(status.message(), "; ", found.status().message())));
  }
  if (!*found) return ToGrpc(status);
  v1::Elsewhere elsewhere;
  elsewhere.set_collector((*found)->collector);
  elsewhere.set_job((*found)->job);
  return grpc::Status(
      grpc::StatusCode::NOT_FOUND,
      absl::StrCat("the collector at ", elsewhere.collector(), " has job ",
                   elsewhere.job().substr(0, 8), "; ask that one (--collector)"),
      elsewhere.SerializeAsString());
}

}  // namespace lull::collector
