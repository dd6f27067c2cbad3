#include "cli/client/elsewhere.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/job_id.h"
#include "daemon/base/status.h"
#include "query.pb.h"

namespace lull {

namespace {

// Who named one collector, and is told of another, should know why.
absl::Status OfAnother(const absl::Status& status, const std::string& job) {
  const char* hint =
      absl::IsUnauthenticated(status)
          ? " (the collectors of a fleet need one read token: docs/fleet.md)"
          : "";
  return absl::Status(status.code(),
                      absl::StrCat("job ", job.substr(0, 8), " is with another ",
                                   "collector: ", status.message(), hint));
}

}  // namespace

template <typename Request, typename Ask>
absl::Status FollowingClient::AskAbout(const Request& request, Ask ask) {
  There there;
  {
    MutexLock lock(mutex_);
    auto known = known_.find(request.job());
    if (known != known_.end()) there = known->second;
  }
  if (there.client == nullptr) {
    const absl::Status status = ask(*here_, request);
    if (!status.GetPayload(kElsewherePayload)) return status;
    LULL_ASSIGN_OR_RETURN(there, Follow(status, request.job()));
  }
  Request of_it = request;
  of_it.set_job(there.job);
  const absl::Status status = ask(*there.client, of_it);
  if (status.ok()) return status;
  MutexLock lock(mutex_);
  known_.erase(request.job());  // the next time it may be somewhere else
  return OfAnother(status, there.job);
}

absl::StatusOr<FollowingClient::There> FollowingClient::Follow(
    const absl::Status& status, const std::string& job) {
  v1::Elsewhere elsewhere;
  if (!elsewhere.ParseFromString(
          std::string(status.GetPayload(kElsewherePayload).value_or(absl::Cord()))) ||
      !IsJobId(elsewhere.job())) {
    return absl::InternalError("the collector does not say where the job is");
  }
  auto make = [&]() -> absl::StatusOr<There> {
    LULL_ASSIGN_OR_RETURN(ChosenCollector other,
                          ResolveOther(collector_, elsewhere.collector()));
    LULL_ASSIGN_OR_RETURN(auto client, make_(std::move(other)));
    return There{std::move(client), elsewhere.job()};
  };
  absl::StatusOr<There> there = make();
  if (!there.ok()) return OfAnother(there.status(), elsewhere.job());
  MutexLock lock(mutex_);
  known_[job] = *there;
  return there;
}

absl::StatusOr<v1::ReportReply> FollowingClient::GetReport(
    const v1::ReportRequest& request) {
  v1::ReportReply reply;
  LULL_RETURN_IF_ERROR(AskAbout(
      request, [&](CollectorClient& client, const auto& asked) -> absl::Status {
        auto answer = client.GetReport(asked);
        if (!answer.ok()) return answer.status();
        if (&client != here_.get() && answer->job().id() != asked.job()) {
          return absl::InternalError("it answers about another one");
        }
        reply = *std::move(answer);
        return absl::OkStatus();
      }));
  return reply;
}

absl::Status FollowingClient::Export(
    const v1::ExportRequest& request,
    absl::FunctionRef<absl::Status(const std::string& bytes, double done)> sink) {
  return AskAbout(request, [sink](CollectorClient& client, const auto& asked) {
    return client.Export(asked, sink);
  });
}

}  // namespace lull
