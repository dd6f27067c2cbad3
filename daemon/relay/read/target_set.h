// All processes that a worker reads, and the batch under way: from their rings into the
// spool. A pass is ReadAll(), Control(), ReleaseEnded(), FlushIfDue().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/control/gpu_plan.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/options.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/end_watch.h"
#include "daemon/relay/read/source_excerpts.h"
#include "daemon/relay/read/target.h"

namespace lull::relay {

class TargetSet {
 public:
  // Both must outlive this.
  TargetSet(const RelayOptions& options, Spool& spool);

  enum class Added {
    kDone,
    kNotWanted,  // a DataLoader's worker whose owner is not read
    kFailed,
  };
  // `info` has its key.
  Added Add(lull::v1::ProcessInfo info, UniqueFd memfd, UniqueFd pidfd, UniqueFd memory,
            bool armed, const GpuPlan& plan);
  // The image has called exec, and the next one of its process began at `by_ns`; or the
  // process was detached from by then. However late that is noticed.
  void EndImage(uint64_t key, uint64_t by_ns);
  void EndImagesOf(pid_t pid, uint64_t by_ns);

  // True when it found enough to come back soon.
  bool ReadAll(uint64_t now_ns);
  // What targets are told and asked besides: the budget, windows, samples.
  void Control(uint64_t now_ns);
  // Those whose end is in the spool; `released` is told their keys.
  void ReleaseEnded(uint64_t now_ns, absl::FunctionRef<void(uint64_t)> released);
  void FlushIfDue(uint64_t now_ns);
  bool IsTracing() const;  // the GPU, one of them
  void Flush(uint64_t now_ns);

  void Arm(const GpuPlan& plan, uint64_t now_ns);
  void Disarm(uint64_t now_ns);
  // Their counters are told again though nothing has changed.
  void RepeatCounters();
  // They are put to sleep, and what they have done so far is read.
  void ReadToTheEnd(uint64_t now_ns);
  // Appends a batch of what `fill` says. Flush() first.
  absl::Status Append(absl::FunctionRef<void(BatchBuilder&)> fill);

  // Names of what native stacks have are found there.
  AsyncSymbolizer& symbols() { return symbols_; }
  // Lines of source that stacks named are still being read, or are in no batch yet.
  // Asked in this order: what is not pending has been read.
  bool IsReadingSources() { return sources_.pending() || sources_.HasRead(); }

  bool empty() const { return targets_.empty(); }
  uint32_t recording() const;  // processes that are, or would be when armed

  struct Totals {
    uint32_t corrupt = 0;
    uint64_t events_read = 0;
    uint64_t events_lost = 0;
  };
  Totals totals() const;  // those that are gone included
  uint64_t ReadersCpuNs() const { return symbols_.CpuNs() + sources_.CpuNs(); }

 private:
  void ForgetSymbols();
  uint64_t WhoseWorker(uint32_t pid) const;
  void SpoolCountersAlone(uint64_t now_ns);
  void Settle(bool spooled);

  const RelayOptions& options_;
  Spool& spool_;
  AsyncSymbolizer symbols_;
  SourceExcerpts sources_;
  std::unique_ptr<HostSampler> sampler_;  // null: not wanted
  std::shared_ptr<GpuClock> gpu_clock_ = std::make_shared<GpuClock>();
  std::map<uint64_t, std::unique_ptr<Target>> targets_;
  EndWatch ends_;  // of their processes
  // Those that are gone, and the last batch that may need the names of their functions.
  std::deque<std::pair<uint64_t, uint64_t>> named_later_;
  Totals of_gone_;

  BatchBuilder batch_;
  uint64_t batch_began_ns_ = 0;
  uint64_t counters_only_ns_ = 0;  // last try while the spool was full
  uint64_t governed_ns_ = 0;
  uint64_t loaders_read_ns_ = 0;
};

}  // namespace lull::relay
