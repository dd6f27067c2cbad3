// The collector's services as the CLI uses them: one call, one deadline, errors
// as sentences that say what to do next. The only file of the CLI that sees gRPC.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client/collector_address.h"
#include "control.pb.h"
#include "query.pb.h"

namespace lull {

class CollectorClient {
 public:
  // Makes a channel; connects with the first call. NOT_FOUND or INVALID_ARGUMENT
  // when the CA certificate cannot be used.
  static absl::StatusOr<std::unique_ptr<CollectorClient>> Create(
      const ChosenCollector& collector, absl::Duration deadline = absl::Seconds(30));
  virtual ~CollectorClient() = default;

  // Errors of all: UNAVAILABLE (nothing answers there), UNAUTHENTICATED (no token,
  // or a wrong one), NOT_FOUND (no such job), DEADLINE_EXCEEDED, INTERNAL.
  virtual absl::StatusOr<v1::StatusReply> GetStatus() = 0;
  // FAILED_PRECONDITION and ABORTED say why the job cannot be reached, or has not
  // confirmed.
  virtual absl::StatusOr<v1::ArmReply> Arm(const v1::ArmRequest& request) = 0;
  virtual absl::StatusOr<v1::MarkReply> Mark(const v1::MarkRequest& request) = 0;
  // FAILED_PRECONDITION if tags are asked for and the collector knows none.
  virtual absl::StatusOr<v1::ListJobsReply> ListJobs(
      const v1::ListJobsRequest& request) = 0;
  // This and Export ask another collector of the fleet where that one has the job.
  virtual absl::StatusOr<v1::ReportReply> GetReport(
      const v1::ReportRequest& request) = 0;
  // Waits for two minutes: it may be made of the reports of all jobs.
  // FAILED_PRECONDITION: what the collector's ClickHouse says.
  virtual absl::StatusOr<v1::FleetReply> GetFleet(const v1::FleetRequest& request) = 0;
  // Takes as long as it takes; UNAVAILABLE too where the collector goes meanwhile. An
  // error of `sink`, which is told how much of the whole has been read, ends it.
  virtual absl::Status Export(
      const v1::ExportRequest& request,
      absl::FunctionRef<absl::Status(const std::string& bytes, double done)> sink) = 0;
};

}  // namespace lull
