// A relay, as the collector sees one: a stream, and what came back on it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ingest.grpc.pb.h"

namespace lull::test {

class FakeRelay {
 public:
  // Opens a stream; `token` "" = none.
  explicit FakeRelay(std::shared_ptr<grpc::Channel> channel,
                     const std::string& token = "");
  ~FakeRelay();

  bool Send(const lull::v1::Hello& hello);
  bool Send(const lull::v1::Batch& batch);
  bool SendRequest(const lull::v1::IngestRequest& request);

  // Reads acknowledgements until one covers `sequence`; false when the stream ends.
  bool AwaitAcknowledgement(uint64_t sequence);
  uint64_t acknowledged() const { return acknowledged_; }
  // What the replies so far said was not taken.
  const std::vector<lull::v1::RejectedRun>& rejected() const { return rejected_; }

  // The status with which the collector ends the stream; call once. With
  // `done_writing` we say first that nothing more comes.
  grpc::Status End(bool done_writing);

 private:
  void Take(const lull::v1::IngestReply& reply);

  grpc::ClientContext context_;
  std::unique_ptr<lull::v1::Ingest::Stub> stub_;
  std::unique_ptr<
      grpc::ClientReaderWriter<lull::v1::IngestRequest, lull::v1::IngestReply>>
      stream_;
  uint64_t acknowledged_ = 0;
  std::vector<lull::v1::RejectedRun> rejected_;
  bool ended_ = false;
};

}  // namespace lull::test
