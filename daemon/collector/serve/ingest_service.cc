#include "daemon/collector/serve/ingest_service.h"

#include "daemon/collector/serve/ingest_stream.h"

namespace lull::collector {

grpc::ServerBidiReactor<lull::v1::IngestRequest, lull::v1::IngestReply>*
IngestService::Stream(grpc::CallbackServerContext* context) {
  grpc::Status admitted = gate_.Check(*context, Right::kWrite);
  gate_.StreamOpened();
  return IngestStream::Start(committer_, desk_, admitted,
                             [this] { gate_.StreamClosed(); });
}

}  // namespace lull::collector
