// Samples of a target's threads (samples/sampler.h): whose, and their way into batches.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/target_rings.h"
#include "daemon/relay/samples/sampler.h"
#include "events.pb.h"

namespace lull::relay {

// References of stacks that samples name. Those of the arena are below it.
inline constexpr uint32_t kFirstSampleStack = 1u << 24;
static_assert(abi::kArenaSize / 16 < kFirstSampleStack);

class TargetSamples {
 public:
  // `sampler`: null: no thread is looked at; must outlive this. `memory`: the target's
  // own descriptor of itself; may be null, or hold none.
  TargetSamples(uint64_t key, pid_t pid, HostSampler* sampler,
                std::shared_ptr<const UniqueFd> memory);
  ~TargetSamples();
  TargetSamples(const TargetSamples&) = delete;
  TargetSamples& operator=(const TargetSamples&) = delete;

  // Goes on behind an earlier worker: its totals, and how far it got in `own`.
  void Resume(const lull::v1::HostSampleCounters& earlier, const TargetRing& own);
  // Threads come and go: they are to be asked for now and then, and at once when
  // `tracing` changes. `tracing`: GPU work that they have to do with is being traced.
  bool IsDue(uint64_t now_ns, bool tracing) const;
  void MakeDue() { planned_ns_ = 0; }
  // Has them looked at, if that is wanted. `plan`: who.
  void Follow(uint64_t now_ns, bool tracing, bool wanted, SamplePlan plan);

  // Adds the samples that were taken, as far as the batch has room, and what they tell
  // of delays. False: it got full.
  bool Read(BatchBuilder* batch, TargetRing* own, RunDelaySampler* delays);
  void Commit() { fresh_stacks_.clear(); }
  void Drop();

  // There are no others of a time before it.
  uint64_t complete_ns() const { return complete_ns_; }
  // A program that is not recorded took the place of this one.
  bool image_gone() const { return image_gone_; }
  const lull::v1::HostSampleCounters& counters() const { return counters_; }

 private:
  void Take();
  void AddStack(uint32_t ref, BatchBuilder* batch);

  const uint64_t key_;
  const pid_t pid_;
  HostSampler* const sampler_;
  const std::shared_ptr<const UniqueFd> memory_;
  SamplePlan followed_;  // as the sampler knows it
  uint64_t planned_ns_ = 0;
  bool tracing_ = false;                  // by then
  uint32_t first_stack_ = 0;              // what the sampler's numbers are added to
  lull::v1::HostSampleCounters earlier_;  // what earlier workers found
  lull::v1::HostSampleCounters counters_;
  std::deque<HostSample> untold_;  // taken, and in no batch yet
  uint64_t complete_ns_ = 0;
  bool image_gone_ = false;
  // To be defined with the first sample that names them, by their reference.
  absl::flat_hash_map<uint32_t, lull::v1::StackDef> untold_stacks_;
  std::vector<lull::v1::StackDef> fresh_stacks_;  // defined in the batch under way
};

}  // namespace lull::relay
