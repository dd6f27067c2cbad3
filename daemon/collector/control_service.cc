#include "daemon/collector/control_service.h"

#include <unistd.h>

#include <utility>

#include "daemon/collector/validate.h"

namespace lull::collector {

ControlService::ControlService(Gate& gate, const Committer& committer,
                               std::string database,
                               std::function<void()> request_shutdown)
    : gate_(gate),
      committer_(committer),
      database_(std::move(database)),
      request_shutdown_(std::move(request_shutdown)) {}

grpc::Status ControlService::GetStatus(grpc::ServerContext* context,
                                       const lull::v1::StatusRequest*,
                                       lull::v1::StatusReply* reply) {
  grpc::Status admitted = gate_.Check(*context);
  if (!admitted.ok()) return admitted;
  reply->set_version(LULL_VERSION);
  reply->set_protocol_version(kProtocolVersion);
  reply->set_pid(static_cast<uint32_t>(getpid()));
  reply->set_database(database_);
  reply->set_relays(gate_.open_streams());
  reply->set_events_stored(committer_.events_stored());
  return grpc::Status::OK;
}

grpc::Status ControlService::Shutdown(grpc::ServerContext* context,
                                      const lull::v1::ShutdownRequest*,
                                      lull::v1::ShutdownReply*) {
  grpc::Status admitted = gate_.Check(*context);
  if (admitted.ok()) request_shutdown_();
  return admitted;
}

}  // namespace lull::collector
