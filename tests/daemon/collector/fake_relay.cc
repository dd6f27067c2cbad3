#include "tests/daemon/collector/fake_relay.h"

#include <chrono>

namespace lull::test {

FakeRelay::FakeRelay(std::shared_ptr<grpc::Channel> channel, const std::string& token)
    : stub_(lull::v1::Ingest::NewStub(channel)) {
  context_.set_wait_for_ready(false);
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  stream_ = stub_->Stream(&context_);
}

FakeRelay::~FakeRelay() {
  if (ended_) return;
  context_.TryCancel();
  (void)stream_->Finish();
}

bool FakeRelay::SendRequest(const lull::v1::IngestRequest& request) {
  return stream_->Write(request);
}

bool FakeRelay::Send(const lull::v1::Hello& hello) {
  lull::v1::IngestRequest request;
  *request.mutable_hello() = hello;
  return SendRequest(request);
}

bool FakeRelay::Send(const lull::v1::Batch& batch) {
  lull::v1::IngestRequest request;
  *request.mutable_batch() = batch;
  return SendRequest(request);
}

bool FakeRelay::AwaitAcknowledgement(uint64_t sequence) {
  lull::v1::IngestReply reply;
  while (acknowledged_ < sequence) {
    if (!stream_->Read(&reply)) return false;
    Take(reply);
  }
  return true;
}

void FakeRelay::Take(const lull::v1::IngestReply& reply) {
  acknowledged_ = reply.acknowledged_sequence();
  rejected_.insert(rejected_.end(), reply.rejected().begin(), reply.rejected().end());
}

grpc::Status FakeRelay::End(bool done_writing) {
  if (done_writing) stream_->WritesDone();
  lull::v1::IngestReply reply;
  while (stream_->Read(&reply)) Take(reply);
  ended_ = true;
  return stream_->Finish();
}

}  // namespace lull::test
