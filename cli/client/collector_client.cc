#include "cli/client/collector_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "cli/client/elsewhere.h"
#include "control.grpc.pb.h"
#include "daemon/base/status.h"
#include "daemon/connection/collector_channel.h"
#include "query.grpc.pb.h"

namespace lull {
namespace {

// Reports with every row of a long job are large; the collector is trusted.
constexpr int kMaxReplyBytes = 256 << 20;
constexpr absl::Duration kFleetDeadline = absl::Minutes(2);

class Client : public CollectorClient {
 public:
  Client(const ChosenCollector& collector, absl::Duration deadline,
         const std::shared_ptr<grpc::Channel>& channel)
      : target_(collector.target),
        tokens_(collector.tokens),
        token_file_(collector.token_file),
        deadline_(deadline),
        query_(v1::Query::NewStub(channel)),
        control_(v1::Control::NewStub(channel)) {}

  absl::StatusOr<v1::StatusReply> GetStatus() override {
    // Any token will do; that one may not write would be noticed last.
    Right right = !tokens_.write.empty()  ? Right::kWrite
                  : !tokens_.read.empty() ? Right::kRead
                                          : Right::kControl;
    v1::StatusRequest request;
    request.set_to_write(right == Right::kWrite);
    return Call(*control_, &v1::Control::Stub::GetStatus, request, right);
  }
  absl::StatusOr<v1::ArmReply> Arm(const v1::ArmRequest& request) override {
    return Call(*control_, &v1::Control::Stub::Arm, request, Right::kControl);
  }
  absl::StatusOr<v1::MarkReply> Mark(const v1::MarkRequest& request) override {
    return Call(*control_, &v1::Control::Stub::Mark, request, Right::kControl);
  }
  absl::StatusOr<v1::ListJobsReply> ListJobs(
      const v1::ListJobsRequest& request) override {
    auto reply = Call(*query_, &v1::Query::Stub::ListJobs, request);
    if (reply.ok() && reply->tags_size() != request.tags_size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the collector at ", target_,
                       " does not know tags; use lull and lulld of the same release "
                       "(lull --version)"));
    }
    return reply;
  }
  absl::StatusOr<v1::ReportReply> GetReport(const v1::ReportRequest& request) override {
    return Call(*query_, &v1::Query::Stub::GetReport, request);
  }
  absl::StatusOr<v1::FleetReply> GetFleet(const v1::FleetRequest& request) override {
    return Call(*query_, &v1::Query::Stub::GetFleet, request, Right::kRead,
                kFleetDeadline);
  }
  absl::Status Export(
      const v1::ExportRequest& request,
      absl::FunctionRef<absl::Status(const std::string& bytes, double done)> sink)
      override {
    grpc::ClientContext context;
    Authorize(tokens_.For(Right::kRead), &context);
    auto reader = query_->Export(&context, request);
    v1::ExportPiece piece;
    while (reader->Read(&piece)) {
      absl::Status taken = sink(piece.data(), piece.done());
      if (taken.ok()) continue;
      context.TryCancel();
      while (reader->Read(&piece)) {
      }
      reader->Finish();
      return taken;
    }
    const grpc::Status status = reader->Finish();
    if (status.error_code() == grpc::StatusCode::CANCELLED) {
      return absl::CancelledError(
          absl::StrCat("the collector at ", target_,
                       " broke off: it is ending, or nobody read for too long"));
    }
    return status.ok() ? absl::OkStatus() : Sentence(status, Right::kRead, deadline_);
  }

 private:
  template <typename Stub, typename Request, typename Reply>
  absl::StatusOr<Reply> Call(Stub& stub,
                             grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                          const Request&, Reply*),
                             const Request& request, Right right = Right::kRead) {
    return Call(stub, method, request, right, deadline_);
  }
  template <typename Stub, typename Request, typename Reply>
  absl::StatusOr<Reply> Call(Stub& stub,
                             grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                          const Request&, Reply*),
                             const Request& request, Right right,
                             absl::Duration deadline) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoNanoseconds(deadline));
    Authorize(tokens_.For(right), &context);
    Reply reply;
    grpc::Status status = (stub.*method)(&context, request, &reply);
    if (status.ok()) return reply;
    return Sentence(status, right, deadline);
  }

  absl::Status Sentence(const grpc::Status& status, Right right,
                        absl::Duration deadline) const {
    auto code = static_cast<absl::StatusCode>(status.error_code());
    const std::string& text = status.error_message();
    switch (code) {
      case absl::StatusCode::kUnavailable:
        return absl::UnavailableError(absl::StrCat(
            "cannot reach the collector at ", target_, ": ", text,
            "; check the address, that lulld runs there, and `lull doctor`"));
      case absl::StatusCode::kUnauthenticated:
        return absl::UnauthenticatedError(
            absl::StrCat("the collector at ", target_, WhyRefused(right)));
      case absl::StatusCode::kDeadlineExceeded:
        return absl::DeadlineExceededError(absl::StrCat(
            "the collector at ", target_, " did not answer within ",
            absl::FormatDuration(deadline), "; try again, or see `lull doctor`"));
      case absl::StatusCode::kNotFound: {
        if (status.error_details().empty()) {
          return absl::NotFoundError(
              absl::StrCat(text, "; `lull jobs` lists what is there"));
        }
        absl::Status elsewhere = absl::NotFoundError(text);
        elsewhere.SetPayload(kElsewherePayload, absl::Cord(status.error_details()));
        return elsewhere;
      }
      case absl::StatusCode::kInvalidArgument:
      case absl::StatusCode::kFailedPrecondition:
      case absl::StatusCode::kAborted:
        return absl::Status(code, text);
      default:
        return absl::Status(
            code, absl::StrCat("the collector at ", target_, " failed: ", text));
    }
  }

  std::string WhyRefused(Right right) const {
    if (tokens_.empty()) {
      return " wants a token; give the file that holds it with --token-file, or in "
             "$LULL_TOKEN_FILE";
    }
    if (tokens_.For(right).empty()) {
      return absl::StrCat(" wants a ", NameOf(right), " token, and ", token_file_,
                          " has none; ask its owner for that line");
    }
    return absl::StrCat(" refuses the token; ask its owner for the right ",
                        NameOf(right), " token, then give it with --token-file");
  }

  std::string target_;
  Tokens tokens_;
  std::string token_file_;
  absl::Duration deadline_;
  std::unique_ptr<v1::Query::Stub> query_;
  std::unique_ptr<v1::Control::Stub> control_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CollectorClient>> CollectorClient::Create(
    const ChosenCollector& collector, absl::Duration deadline) {
  LULL_ASSIGN_OR_RETURN(auto channel, MakeChannel(collector, kMaxReplyBytes));
  auto make =
      [deadline](
          ChosenCollector other) -> absl::StatusOr<std::unique_ptr<CollectorClient>> {
    LULL_ASSIGN_OR_RETURN(auto there, MakeChannel(other, kMaxReplyBytes));
    return std::make_unique<Client>(other, deadline, there);
  };
  return std::make_unique<FollowingClient>(
      collector, std::make_unique<Client>(collector, deadline, channel), make);
}

}  // namespace lull
