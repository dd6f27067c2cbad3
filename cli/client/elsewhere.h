// Follows a job to the collector that has it: one of a fleet (`lulld --clickhouse`)
// names another one of the same fleet.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/client/collector_client.h"
#include "daemon/base/mutex.h"

namespace lull {

// An Elsewhere of query.proto, serialized, as the payload of a status NOT_FOUND.
inline constexpr absl::string_view kElsewherePayload = "lull.v1.Elsewhere";

// Asks `here`, and where that names another collector, asks that one; no farther. Keeps
// the connection for further questions about the same job. Thread-safe if `here` is.
class FollowingClient : public CollectorClient {
 public:
  using MakeClient =
      std::function<absl::StatusOr<std::unique_ptr<CollectorClient>>(ChosenCollector)>;

  FollowingClient(ChosenCollector collector, std::unique_ptr<CollectorClient> here,
                  MakeClient make)
      : collector_(std::move(collector)),
        here_(std::move(here)),
        make_(std::move(make)) {}

  absl::StatusOr<v1::StatusReply> GetStatus() override { return here_->GetStatus(); }
  absl::StatusOr<v1::ArmReply> Arm(const v1::ArmRequest& request) override {
    return here_->Arm(request);
  }
  absl::StatusOr<v1::MarkReply> Mark(const v1::MarkRequest& request) override {
    return here_->Mark(request);
  }
  absl::StatusOr<v1::ListJobsReply> ListJobs(
      const v1::ListJobsRequest& request) override {
    return here_->ListJobs(request);
  }
  absl::StatusOr<v1::FleetReply> GetFleet(const v1::FleetRequest& request) override {
    return here_->GetFleet(request);
  }
  absl::StatusOr<v1::ReportReply> GetReport(const v1::ReportRequest& request) override;
  absl::Status Export(
      const v1::ExportRequest& request,
      absl::FunctionRef<absl::Status(const std::string& bytes, double done)> sink)
      override;

 private:
  struct There {
    std::shared_ptr<CollectorClient> client;
    std::string job;  // whole id
  };

  // Calls ask(client, request) here, or where `request.job()` is.
  template <typename Request, typename Ask>
  absl::Status AskAbout(const Request& request, Ask ask);
  absl::StatusOr<There> Follow(const absl::Status& status, const std::string& job);

  const ChosenCollector collector_;
  const std::unique_ptr<CollectorClient> here_;
  const MakeClient make_;

  Mutex mutex_;
  // By what users call the job.
  absl::flat_hash_map<std::string, There> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lull
