// What lull does around a job, whoever starts it: a place for its spool, a collector, a
// relay before the first process and a summary after the last.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/client/collector_address.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/control/gpu_plan.h"
#include "daemon/relay/options.h"
#include "daemon/relay/process/keeper.h"

namespace lull {

struct SessionOptions {
  std::string name;
  std::vector<std::string> tags;
  std::string run_id;  // --run-id, or ""
  CollectorFlags collector;
  bool quiet = false;  // no summary; errors are still said
  v1::JobSettings settings;
  relay::GpuPlan gpu;
};

class Session {
 public:
  // `verb` stands before errors, `command` is what the job is called in reports. Makes
  // folders, opens nothing that stays open.
  static absl::StatusOr<std::unique_ptr<Session>> Plan(const char* verb,
                                                       const SessionOptions& options,
                                                       const std::string& command);

  // May be changed until StartRelay().
  relay::RelayOptions& relay() { return relay_; }
  const std::string& runtime() const { return runtime_; }

  // Starts a private collector, or asks the given one: it is better to find a wrong
  // address or token now than after hours.
  absl::Status ReachCollector();
  // `listener`: for relay().socket_path, when somebody else had to make it.
  absl::Status StartRelay(UniqueFd listener = {});
  relay::Keeper& keeper() { return *keeper_; }

  // The job is over: delivers, says what could not be delivered, prints the summary.
  // Waits as long as delivery goes on. If it stands still for kPatience, the relay goes
  // on without us. exit_status as Keeper::JobEnded() has it.
  void Finish(int exit_status);

 private:
  Session() = default;
  absl::Status TryCollector();
  std::string HowToDeliver() const;
  void Summarize();

  const char* verb_ = "";
  bool quiet_ = false;
  absl::Duration delayed_;  // the job, because no collector could be reached
  std::string runtime_;
  ChosenCollector collector_;
  relay::RelayOptions relay_;
  std::unique_ptr<relay::Keeper> keeper_;
};

}  // namespace lull
