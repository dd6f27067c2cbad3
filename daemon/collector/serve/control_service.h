// The Control service: what the collector is doing, an end to it, the way by which
// `lull arm` reaches a job, and the marks of jobs.
#pragma once

#include <functional>
#include <string>

#include "control.grpc.pb.h"
#include "daemon/collector/ingest/committer.h"
#include "daemon/collector/serve/arm_desk.h"
#include "daemon/collector/serve/fleet_desk.h"
#include "daemon/collector/serve/gate.h"
#include "daemon/storage/store.h"

namespace lull::collector {

class ControlService : public lull::v1::Control::Service {
 public:
  ControlService(Gate& gate, Committer& committer, storage::Store& store, ArmDesk& desk,
                 FleetDesk& fleet, std::string database,
                 std::function<void()> request_shutdown);

  grpc::Status GetStatus(grpc::ServerContext* context,
                         const lull::v1::StatusRequest* request,
                         lull::v1::StatusReply* reply) override;
  grpc::Status Shutdown(grpc::ServerContext* context, const lull::v1::ShutdownRequest*,
                        lull::v1::ShutdownReply*) override;
  grpc::Status Arm(grpc::ServerContext* context, const lull::v1::ArmRequest* request,
                   lull::v1::ArmReply* reply) override;
  grpc::Status Mark(grpc::ServerContext* context, const lull::v1::MarkRequest* request,
                    lull::v1::MarkReply* reply) override;

 private:
  Gate& gate_;
  Committer& committer_;
  storage::Store& store_;
  ArmDesk& desk_;
  FleetDesk& fleet_;
  const std::string database_;
  const std::function<void()> request_shutdown_;
};

}  // namespace lull::collector
