#include "daemon/collector/serve/otlp_push.h"

#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/base/thread.h"
#include "daemon/words/format.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kLastPush = absl::Seconds(1);
constexpr size_t kMostOfAMessage = 300;  // bytes of what a receiver says

// By its name: a lookup might keep lulld from starting.
bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

// What a receiver says is for one line of a log.
std::string InOneLine(const std::string& said) {
  return Printable(CleanText(said, kMostOfAMessage));
}

absl::Status OfReceiver(const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::string said = InOneLine(status.error_message());
  return absl::Status(code, said.empty() ? absl::StatusCodeToString(code) : said);
}

std::shared_ptr<grpc::Channel> MakeOtlpChannel(const OtlpTarget& target) {
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (target.tls) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = target.roots;
    credentials = grpc::SslCredentials(options);
  }
  grpc::ChannelArguments arguments;
  // A proxy of the environment is for what lies outside.
  if (IsLoopback(target.address.host)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target.grpc_name(), credentials, arguments);
}

}  // namespace

OtlpPush::OtlpPush(OtlpTarget target, MetricsSource& source)
    : target_(std::move(target)),
      source_(source),
      thread_(StartThread([this] { Run(); })) {}

OtlpPush::~OtlpPush() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    if (under_way_ != nullptr) under_way_->TryCancel();
    ended_.notify_all();
  }
  thread_.join();
}

void OtlpPush::Run() {
  const auto interval = absl::ToChronoNanoseconds(target_.interval);
  bool last = false;
  while (!last) {
    {
      const auto until = std::chrono::steady_clock::now() + interval;
      MutexLock lock(mutex_);
      while (!ending_ &&
             ended_.wait_until(lock.native(), until) != std::cv_status::timeout) {
      }
      last = ending_;
    }
    const absl::Status pushed = Push(last);
    // What lulld broke off itself is nobody's error, and the last push comes yet.
    if (last || !IsEnding()) Tell(pushed);
  }
}

bool OtlpPush::IsEnding() {
  MutexLock lock(mutex_);
  return ending_;
}

absl::Status OtlpPush::Push(bool last) {
  LULL_ASSIGN_OR_RETURN(const MetricsSource::Answer answer, source_.Samples(last));
  if (answer.made == sent_) return told_;  // nothing new
  const absl::Time deadline = absl::Now() + (last ? kLastPush : target_.timeout);
  const auto time_ns = static_cast<uint64_t>(absl::ToUnixNanos(answer.made));
  int64_t refused = 0;
  std::string why;
  for (const auto& request :
       metrics::OtlpRequests(answer.samples, target_.resource, time_ns)) {
    LULL_ASSIGN_OR_RETURN(const metrics::otlp::ExportMetricsPartialSuccess of_it,
                          Send(request, deadline, last));
    if (of_it.rejected_data_points() <= 0) continue;
    // No more than a request may have: what it says may be without sense.
    refused +=
        std::min<int64_t>(of_it.rejected_data_points(), metrics::kPointsOfARequest);
    why = InOneLine(of_it.error_message());
  }
  // What it took is there; sending the rest again would change nothing.
  sent_ = answer.made;
  if (refused == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it refused ", refused, " of the points: ", why));
}

absl::StatusOr<metrics::otlp::ExportMetricsPartialSuccess> OtlpPush::Send(
    const metrics::otlp::ExportMetricsServiceRequest& request, absl::Time deadline,
    bool last) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  for (const auto& [key, value] : target_.headers) context.AddMetadata(key, value);
  {
    MutexLock lock(mutex_);
    if (ending_ && !last) return absl::CancelledError("lulld ends");
    under_way_ = last ? nullptr : &context;  // which its end cancels
  }
  if (receiver_ == nullptr) {
    receiver_ = metrics::otlp::MetricsService::NewStub(MakeOtlpChannel(target_));
  }
  metrics::otlp::ExportMetricsServiceResponse response;
  const grpc::Status status = receiver_->Export(&context, request, &response);
  {
    MutexLock lock(mutex_);
    under_way_ = nullptr;
  }
  if (!status.ok()) {
    receiver_ = nullptr;
    return OfReceiver(status);
  }
  return response.partial_success();
}

// Once for each kind of error: a receiver may word each one anew.
void OtlpPush::Tell(const absl::Status& pushed) {
  if (pushed.code() == told_.code()) return;
  if (pushed.ok()) {
    LogInfo(absl::StrCat("metrics arrive at ", target_.url(), " again"));
  } else {
    LogWarning(absl::StrCat("metrics do not arrive at ", target_.url(), ": ",
                            std::string(pushed.message())));
  }
  told_ = pushed;
}

}  // namespace lull::collector
