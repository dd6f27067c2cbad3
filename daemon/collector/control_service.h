// The Control service: what the collector is doing, and an end to it.
#pragma once

#include <functional>
#include <string>

#include "control.grpc.pb.h"
#include "daemon/collector/committer.h"
#include "daemon/collector/gate.h"

namespace lull::collector {

class ControlService : public lull::v1::Control::Service {
 public:
  ControlService(Gate& gate, const Committer& committer, std::string database,
                 std::function<void()> request_shutdown);

  grpc::Status GetStatus(grpc::ServerContext* context, const lull::v1::StatusRequest*,
                         lull::v1::StatusReply* reply) override;
  grpc::Status Shutdown(grpc::ServerContext* context, const lull::v1::ShutdownRequest*,
                        lull::v1::ShutdownReply*) override;

 private:
  Gate& gate_;
  const Committer& committer_;
  const std::string database_;
  const std::function<void()> request_shutdown_;
};

}  // namespace lull::collector
