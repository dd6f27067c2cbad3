// A collector that answers every question with the fixed replies, on a unix
// socket: for tests of the client in process, and as a program for tests of
// `lull` as a whole. It acknowledges what relays send and forgets it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "control.grpc.pb.h"
#include "ingest.grpc.pb.h"
#include "query.grpc.pb.h"
#include "tests/cli/fixed_replies.h"

namespace lull::testing {

class FakeCollector {
 public:
  // token: "" takes everyone; else calls without it are UNAUTHENTICATED.
  explicit FakeCollector(const std::string& address, std::string token = "")
      : token_(std::move(token)), query_(this), control_(this), ingest_(this) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&query_);
    builder.RegisterService(&control_);
    builder.RegisterService(&ingest_);
    server_ = builder.BuildAndStart();
  }

  bool ok() const { return server_ != nullptr; }
  void Wait() { server_->Wait(); }

  // The next queries fail with this instead of being answered.
  void FailWith(grpc::Status status) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(status);
  }
  v1::ReportRequest last_request() {
    std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  grpc::Status Check(const grpc::ServerContext& context) {
    std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    if (token_.empty()) return grpc::Status::OK;
    auto header = context.client_metadata().find("authorization");
    bool right = header != context.client_metadata().end() &&
                 header->second == grpc::string_ref("Bearer " + token_);
    return right ? grpc::Status::OK
                 : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "wrong token");
  }

  template <typename Reply>
  grpc::Status Answer(const grpc::ServerContext& context,
                      const v1::ReportRequest& request, Reply* reply, Reply fixed) {
    grpc::Status status = Check(context);
    if (!status.ok()) return status;
    std::lock_guard lock(mutex_);
    last_request_ = request;
    if (request.job() == "missing") {
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "no job 'missing'");
    }
    *reply = std::move(fixed);
    return grpc::Status::OK;
  }

  class Query : public v1::Query::Service {
   public:
    explicit Query(FakeCollector* owner) : owner_(owner) {}
    grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest*,
                          v1::ListJobsReply* reply) override {
      return owner_->Answer(*context, {}, reply, FixedJobs());
    }
    grpc::Status GetReport(grpc::ServerContext* context,
                           const v1::ReportRequest* request,
                           v1::ReportReply* reply) override {
      return owner_->Answer(*context, *request, reply, FixedAnswer());
    }

   private:
    FakeCollector* owner_;
  };

  class Control : public v1::Control::Service {
   public:
    explicit Control(FakeCollector* owner) : owner_(owner) {}
    grpc::Status GetStatus(grpc::ServerContext* context, const v1::StatusRequest*,
                           v1::StatusReply* reply) override {
      grpc::Status status = owner_->Check(*context);
      if (!status.ok()) return status;
      reply->set_version("fake");
      reply->set_protocol_version(2);
      return grpc::Status::OK;
    }

   private:
    FakeCollector* owner_;
  };

  class Ingest : public v1::Ingest::Service {
   public:
    explicit Ingest(FakeCollector* owner) : owner_(owner) {}
    grpc::Status Stream(
        grpc::ServerContext* context,
        grpc::ServerReaderWriter<v1::IngestReply, v1::IngestRequest>* stream) override {
      grpc::Status status = owner_->Check(*context);
      v1::IngestRequest request;
      while (status.ok() && stream->Read(&request)) {
        if (!request.has_batch()) continue;
        v1::IngestReply reply;
        reply.set_acknowledged_sequence(request.batch().sequence());
        stream->Write(reply);
      }
      return status;
    }

   private:
    FakeCollector* owner_;
  };

  std::mutex mutex_;
  std::string token_;
  grpc::Status failure_;
  v1::ReportRequest last_request_;
  Query query_;
  Control control_;
  Ingest ingest_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lull::testing
