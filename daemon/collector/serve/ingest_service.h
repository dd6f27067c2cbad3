// The Ingest service: one reactor per stream. It validates on gRPC's threads and
// leaves the rest to the committer. A bad message ends its own stream and no other.
#pragma once

#include "daemon/collector/ingest/committer.h"
#include "daemon/collector/serve/arm_desk.h"
#include "daemon/collector/serve/gate.h"
#include "ingest.grpc.pb.h"

namespace lull::collector {

class IngestService : public lull::v1::Ingest::CallbackService {
 public:
  IngestService(Gate& gate, Committer& committer, ArmDesk& desk)
      : gate_(gate), committer_(committer), desk_(desk) {}

  grpc::ServerBidiReactor<lull::v1::IngestRequest, lull::v1::IngestReply>* Stream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ReadClock(grpc::CallbackServerContext* context,
                                      const lull::v1::ClockRequest* request,
                                      lull::v1::ClockReply* reply) override;

 private:
  Gate& gate_;
  Committer& committer_;
  ArmDesk& desk_;
};

}  // namespace lull::collector
