#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/job_id.h"
#include "daemon/base/status.h"
#include "daemon/base/tags.h"
#include "daemon/base/text.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/collector/ingest/validate_fields.h"

namespace lull::collector {
namespace {

absl::Status CheckImport(const lull::v1::ImportInfo& told) {
  if (std::max({told.files_size(), told.ignored_size(), told.found_size(),
                told.not_applied_size()}) > kMaxImportLines) {
    return Invalid("hello.job.imported has a list of more than ", kMaxImportLines);
  }
  LULL_RETURN_IF_ERROR(CheckText("hello.job.imported.format", told.format()));
  for (const std::string& file : told.files()) {
    LULL_RETURN_IF_ERROR(CheckText("hello.job.imported.files", file));
  }
  for (const std::string& rule : told.not_applied()) {
    LULL_RETURN_IF_ERROR(CheckText("hello.job.imported.not_applied", rule));
  }
  for (const auto* counts : {&told.ignored(), &told.found()}) {
    for (const lull::v1::ImportInfo::Count& count : *counts) {
      LULL_RETURN_IF_ERROR(CheckText("hello.job.imported.what", count.what()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateArming(absl::string_view field, const lull::v1::ArmState& state) {
  return CheckText(absl::StrCat(field, ".error"), state.error());
}

absl::Status ValidateClock(const lull::v1::ClockReading& reading) {
  LULL_RETURN_IF_ERROR(CheckTime("clock.at_ns", reading.at_ns()));
  constexpr size_t kLongestBootId = 64;  // it has 36
  if (reading.boot_id().size() > kLongestBootId) {
    return Invalid("clock.boot_id is none");
  }
  // 18 years; what lies farther apart would leave the common time of hosts
  // (ranks::HostClock::kBase).
  constexpr int64_t kMost = int64_t{1} << 59;
  if (reading.low_ns() > reading.high_ns() || reading.low_ns() < -kMost ||
      reading.high_ns() > kMost) {
    return Invalid("clock.low_ns and clock.high_ns are no interval");
  }
  return absl::OkStatus();
}

absl::Status ValidateHello(const lull::v1::Hello& hello) {
  if (hello.protocol_version() < kOldestProtocolVersion ||
      hello.protocol_version() > kProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("hello.protocol_version is ", hello.protocol_version(),
                     ", this collector speaks ", kProtocolVersion,
                     "; use the same version of lull on both sides"));
  }
  const lull::v1::JobInfo& job = hello.job();
  if (!IsJobId(job.id()))
    return Invalid("hello.job.id is not 32 lower-case hex digits");
  for (const auto& [field, text] :
       {std::pair<absl::string_view, const std::string&>{"hello.job.name", job.name()},
        {"hello.job.command", job.command()},
        {"hello.job.host", job.host()},
        {"hello.job.user", job.user()},
        {"hello.job.lull_version", job.lull_version()},
        {"hello.job.gpu_schedule", job.gpu_schedule()},
        {"hello.job.run_id", job.run_id()},
        {"hello.job.boot_id", job.boot_id()}}) {
    LULL_RETURN_IF_ERROR(CheckText(field, text));
  }
  if (!AreTags(job.tags())) return Invalid("hello.job.tags is no list of tags");
  LULL_RETURN_IF_ERROR(CheckImport(job.imported()));
  LULL_RETURN_IF_ERROR(CheckTime("hello.job.start_ns", job.start_ns()));
  LULL_RETURN_IF_ERROR(
      CheckTime("hello.job.start_realtime_ns", job.start_realtime_ns()));
  if (!std::isfinite(job.overhead_budget_percent())) {
    return Invalid("hello.job.overhead_budget_percent is not a number");
  }
  LULL_RETURN_IF_ERROR(ValidateArming("hello.arming", hello.arming()));
  absl::flat_hash_set<uint32_t> ids;
  for (const lull::v1::ApiName& api : hello.apis()) {
    LULL_RETURN_IF_ERROR(CheckApi("hello.apis", api));
    if (!ids.insert(api.id()).second) {
      return Invalid("hello.apis.id is ", api.id(), ", which is there twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace lull::collector
