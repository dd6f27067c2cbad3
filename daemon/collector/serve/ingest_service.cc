#include "daemon/collector/serve/ingest_service.h"

#include "daemon/base/clock.h"
#include "daemon/base/clock_identity.h"
#include "daemon/collector/serve/ingest_stream.h"

namespace lull::collector {

grpc::ServerBidiReactor<lull::v1::IngestRequest, lull::v1::IngestReply>*
IngestService::Stream(grpc::CallbackServerContext* context) {
  grpc::Status admitted = gate_.Check(*context, Right::kWrite);
  gate_.StreamOpened();
  return IngestStream::Start(committer_, desk_, admitted,
                             [this] { gate_.StreamClosed(); });
}

grpc::ServerUnaryReactor* IngestService::ReadClock(grpc::CallbackServerContext* context,
                                                   const lull::v1::ClockRequest*,
                                                   lull::v1::ClockReply* reply) {
  reply->set_received_ns(MonotonicNs());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reply->set_boot_id(OwnClock().boot_id);
  reply->set_time_namespace(OwnClock().time_namespace);
  const grpc::Status admitted = gate_.Check(*context, Right::kWrite);
  reply->set_answered_ns(MonotonicNs());
  reactor->Finish(admitted);
  return reactor;
}

}  // namespace lull::collector
