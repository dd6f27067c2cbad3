// What a relay needs to know; made by the CLI, handed to the worker process over
// its channel (never through arguments: the token would show in `ps`).
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "daemon/connection/collector_address.h"
#include "daemon/relay/control/gpu_plan.h"
#include "ingest.pb.h"

namespace lull::relay {

inline constexpr double kDefaultOverheadBudgetPercent = 1.0;
inline double OverheadBudgetPercent(const lull::v1::JobSettings& settings) {
  return settings.has_overhead_budget_percent() ? settings.overhead_budget_percent()
                                                : kDefaultOverheadBudgetPercent;
}

struct RelayOptions {
  std::string socket_path;      // where targets say hello ($LULL_SOCKET); its
                                // directory is made with mode 0700
  std::string spool_directory;  // of this job alone; made with mode 0700, removed
                                // once everything in it is acknowledged
  uint64_t spool_limit_bytes = 256u << 20;  // at least kMinSpoolBytes

  CollectorAddress collector;

  // Complete, id and settings included; the keeper adds what `gpu` says.
  lull::v1::JobInfo job;
  GpuPlan gpu;
  // `lull attach`: the targets were there before the relay, and stay when it goes. A
  // relay whose keeper is gone puts them to sleep and ends.
  bool attached = false;
  uint32_t target_user = UINT32_MAX;  // who owns the targets, if we do not
  bool dormant = false;               // targets sleep until the job is armed

  // How long the relay still listens to targets that outlive the job's own process.
  absl::Duration grace = absl::Milliseconds(900);
};

inline constexpr uint64_t kMinSpoolBytes = 4u << 20;

}  // namespace lull::relay
