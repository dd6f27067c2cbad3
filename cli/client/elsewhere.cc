#include "cli/client/elsewhere.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "query.pb.h"

namespace lull {

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
  absl::Status status = ask(*there.client, of_it);
  if (!status.ok()) {
    MutexLock lock(mutex_);
    known_.erase(request.job());  // the next time it may be somewhere else
  }
  status.ErasePayload(kElsewherePayload);
  return status;
}

absl::StatusOr<FollowingClient::There> FollowingClient::Follow(
    const absl::Status& status, const std::string& job) {
  v1::Elsewhere elsewhere;
  if (!elsewhere.ParseFromString(
          std::string(status.GetPayload(kElsewherePayload).value_or(absl::Cord())))) {
    return absl::InternalError("the collector does not say where the job is");
  }
  auto make = [&]() -> absl::StatusOr<There> {
    LULL_ASSIGN_OR_RETURN(ChosenCollector other,
                          ResolveOther(collector_, elsewhere.collector()));
    LULL_ASSIGN_OR_RETURN(auto client, make_(std::move(other)));
    return There{std::move(client), elsewhere.job()};
  };
  absl::StatusOr<There> there = make();
  if (!there.ok()) {
    return absl::Status(
        there.status().code(),
        absl::StrCat("job ", elsewhere.job().substr(0, 8),
                     " is with another collector: ", there.status().message()));
  }
  MutexLock lock(mutex_);
  known_[job] = *there;
  return there;
}

absl::StatusOr<v1::ReportReply> FollowingClient::GetReport(
    const v1::ReportRequest& request) {
  v1::ReportReply reply;
  LULL_RETURN_IF_ERROR(
      AskAbout(request, [&reply](CollectorClient& client, const auto& asked) {
        auto answer = client.GetReport(asked);
        if (answer.ok()) reply = *std::move(answer);
        return answer.status();
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
