// What a collector says of a job that it does not have.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

#include "absl/status/status.h"
#include "daemon/collector/serve/fleet_desk.h"
#include "daemon/storage/store.h"

namespace lull::collector {

// As `status` says it. If it is that there is no such job in `store`: with what the
// fleet knows of it, and the one that has it as an Elsewhere in the details.
grpc::Status WithWhereabouts(const absl::Status& status, const std::string& job,
                             storage::Store& store, FleetDesk& fleet,
                             grpc::ServerContext* context);

}  // namespace lull::collector
