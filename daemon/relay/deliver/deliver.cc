#include "daemon/relay/deliver/deliver.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/deliver/upstream.h"
#include "daemon/relay/options.h"

namespace lull::relay {
namespace {

// The spool's own limit must not keep the job's end out.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;
constexpr int kEndLookMs = 5;  // whether the collector refuses, or it is too late

absl::Status EndJob(const lull::v1::JobInfo& job, Spool* spool) {
  if (spool->state().job_ended) return absl::OkStatus();
  lull::v1::Batch batch;
  batch.mutable_job_end()->set_known(false);
  batch.mutable_job_end()->set_exit_status(-1);
  batch.mutable_job_end()->set_cut_off(true);
  batch.mutable_job_end()->set_end_ns(
      std::max(spool->state().latest_ns, job.start_ns()));
  return spool->Append(&batch);
}

bool IsLocked(const std::string& path) {
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CLOEXEC));
  return lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

bool IsOwned(const std::string& directory) {
  return IsLocked(directory + "/lock") || IsLocked(directory + "/keeper");
}

}  // namespace

absl::Status DeliverSpool(const std::string& directory, const DeliverOptions& options) {
  LULL_ASSIGN_OR_RETURN(lull::v1::Hello hello, ReadSpoolHello(directory));
  LULL_ASSIGN_OR_RETURN(UniqueFd keeper, KeepSpool(directory));
  LULL_ASSIGN_OR_RETURN(std::unique_ptr<Spool> spool, Spool::Open(directory, kNoLimit));
  LULL_RETURN_IF_ERROR(EndJob(hello.job(), spool.get()));
  absl::Time deadline = SteadyNow() + options.timeout;
  AsyncSymbolizer symbols(directory);
  Upstream upstream(options.collector, std::move(hello), spool.get(), &symbols);
  while (spool->acknowledged() < spool->last_sequence()) {
    UpstreamStatus status = upstream.status();
    bool late = SteadyNow() > deadline;
    if (status.refused || late) {
      absl::Status why = status.last_error.ok()
                             ? absl::DeadlineExceededError(
                                   "the collector has not acknowledged in time")
                             : status.last_error;
      return Annotate(why, absl::StrCat("the spool ", directory, " stays"));
    }
    upstream.Watch();
    pollfd delivered{spool->all_acknowledged_fd(), POLLIN, 0};
    poll(&delivered, 1, kEndLookMs);
  }
  return spool->Remove();
}

void TidySpools(const std::string& parent, uint64_t limit) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::pair<std::string, uint64_t>> sizes;
  uint64_t total = 0;
  for (const std::string& spool : FindLeftoverSpools(parent)) {
    uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(spool, error)) {
      uint64_t size = file.file_size(error);
      bytes += error ? 0 : size;
    }
    sizes.emplace_back(spool, bytes);
    total += bytes;
  }
  for (const auto& [spool, bytes] : sizes) {
    if (total <= limit) return;
    auto keeper = KeepSpool(spool);  // nobody delivers it meanwhile
    if (!keeper.ok()) continue;
    LogDebug(absl::StrCat("too many spools that were not delivered: ", spool,
                          " is removed"));
    if (RemoveTree(spool).ok()) total -= bytes;
  }
}

std::vector<std::string> FindLeftoverSpools(const std::string& parent) {
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    std::string path = entry.path().string();
    if (!std::filesystem::exists(entry.path() / "hello", error) || IsOwned(path))
      continue;
    found.emplace_back(std::filesystem::last_write_time(entry.path() / "hello", error),
                       path);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace lull::relay
