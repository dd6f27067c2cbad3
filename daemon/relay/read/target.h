// One process image that is being read: its segment, how far each ring has been
// read, what the collector knows by now.
//
// Reading and committing are two steps. Read() copies events into a batch;
// Commit() says that the batch is in the spool, and only then gives the slots back
// to the writer; Drop() says that there was no room for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/control/governor.h"
#include "daemon/relay/control/gpu_plan.h"
#include "daemon/relay/control/gpu_schedule.h"
#include "daemon/relay/deliver/spool_state.h"
#include "daemon/relay/options.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/definitions.h"
#include "daemon/relay/read/segment_reader.h"
#include "daemon/relay/samples/run_delay.h"
#include "daemon/relay/samples/sampler.h"
#include "daemon/relay/symbols/native_symbolizer.h"

namespace lull::relay {

// References of stacks that samples name. Those of the arena are below it.
inline constexpr uint32_t kFirstSampleStack = 1u << 24;
static_assert(abi::kArenaSize / 16 < kFirstSampleStack);

// A batch is closed when it is about so large; a collector takes 4 MiB.
inline constexpr size_t kMaxBatchBytes = 1u << 20;

struct TargetOptions {
  lull::v1::JobSettings settings;
  std::string snapshot_path;  // of the mappings; "" = no native symbols
  GpuPlan gpu;
  std::shared_ptr<GpuClock> gpu_clock;  // of the job; null: one of its own
  bool armed = true;
  HostSampler* sampler = nullptr;  // null: no thread is looked at; must outlive this
  std::shared_ptr<const UniqueFd> memory;  // its own descriptor of itself; may be null
};

class Target {
 public:
  // Maps the segment, goes on where `state` and the rings' tails say, arms it or puts
  // it to sleep.
  // `state` must outlive this.
  static absl::StatusOr<std::unique_ptr<Target>> Open(lull::v1::ProcessInfo info,
                                                      UniqueFd memfd, UniqueFd pidfd,
                                                      const TargetOptions& options,
                                                      ModuleCache* modules,
                                                      SpoolState* state);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  uint64_t key() const { return info_.key(); }
  bool corrupt() const { return corrupt_; }
  int pidfd() const { return pidfd_.get(); }  // -1: none
  pid_t pid() const { return static_cast<pid_t>(info_.pid()); }
  bool ended() const { return ended_; }  // as CheckEnded() last found

  // Whether the process, or this image of it, is gone: nothing is written any more.
  // `ask`: the kernel may know of an end that we do not.
  bool CheckEnded(bool ask = true);
  void SetImageEnded() { ended_ = true; }

  // Adds who the process is, if that is new. Read() does so too.
  void AddIdentity(BatchBuilder* batch);
  // Adds what is committed to the batch, with the definitions that it needs.
  // Returns false when the batch got full before all was read.
  bool Read(BatchBuilder* batch);
  // Adds totals if they changed; `final` also if they were added a moment ago. As of
  // when the last Read() that read all began: before that began, nothing was
  // committed that it could have missed.
  void AddCounters(BatchBuilder* batch, uint64_t now_ns, bool final);
  // Adds the end of the process. Only when all has been read.
  void AddEnd(BatchBuilder* batch, uint64_t now_ns);

  void Commit();
  void Drop();

  // Has the symbols of new libraries read before they are needed; a few times a second.
  void PrepareSymbols() {
    if (symbolizer_ != nullptr) symbolizer_->Prepare();
  }
  // Sets what the budget takes away; a few times a second.
  void Govern(uint64_t now_ns);
  // Gives back the rings of threads that are gone; a few times a second.
  void FreeRings();
  // Sets the windows of GPU tracing where they go by the clock; often.
  void DriveGpu(uint64_t now_ns);
  // Adds what the threads that submit GPU work waited for processors, when that is due.
  void FollowRunDelay(BatchBuilder* batch, uint64_t now_ns);
  void SampleRunDelay(BatchBuilder* batch, uint64_t now_ns);
  // Has the threads looked at that are to be, as often as they are to be; often.
  // `tracing`: GPU work that they have to do with is being traced.
  void FollowSamples(uint64_t now_ns, bool tracing);
  bool IsTracing() const;
  // Of a DataLoader worker, whose segment is the relay's own: the key of its process.
  uint64_t worker_of() const { return info_.worker_of(); }
  // Wakes a process up that fell asleep because nobody read its rings: here is
  // somebody.
  void GoOnIfUnread(uint64_t now_ns);
  // The process is to record from now on; also one that does so already, with a plan
  // that is new.
  void Arm(const GpuPlan& gpu, uint64_t now_ns);
  void Disarm(uint64_t now_ns);
  // The next AddCounters() adds them though nothing has changed: a sign of life.
  void RepeatCounters() { counters_sent_.clear(); }

  // The fullest ring: committed events that are not given back yet.
  uint64_t Backlog() const;
  uint64_t events_read() const { return events_read_; }
  uint64_t events_lost() const { return events_lost_; }
  bool end_is_spooled() const { return end_spooled_; }

 private:
  struct Ring {
    uint64_t next = 0;      // to be read next
    uint64_t released = 0;  // the tail, as last stored
    uint32_t tid = 0;
    uint64_t lost_relay = 0;
    bool submits = false;                  // its thread gives the GPU work
    bool allocates = false;                // or allocates tensors
    abi::OwnerWord gone = abi::kFreeRing;  // the owner whose thread has ended
  };

  Target(lull::v1::ProcessInfo info, UniqueFd pidfd, char* base,
         const TargetOptions& options, SpoolState* state);
  void InitControl(const TargetOptions& options);
  void Resume();
  void ResumeRing(uint32_t index);
  void ResumeOwnRing();
  // Rings that came into use since the last call are read from now on.
  void FollowRings();
  bool HasExited() const;
  void FindGoneThreads();
  bool ReadRing(uint32_t ring, uint64_t head, BatchBuilder* batch);
  // How many of `count` events can be taken at once: same thread, nothing that
  // cannot be, what they refer to defined. Stops early when the batch is full or the
  // segment corrupt.
  size_t TakeRun(Ring* ring, abi::Event* events, size_t count, BatchBuilder* batch);
  void Notice(const abi::Event& event, Ring* ring);
  void GiveUp();
  void RememberProgress(uint32_t number, Ring* ring);
  void DropUnspooled(uint32_t number, Ring* ring);
  // Adds the samples that were taken, as far as the batch has room. False: it got full.
  bool ReadSamples(BatchBuilder* batch);
  void TakeSamples();
  // Has the sampler say when the memory is nobody's; it is the one to ask that.
  void WatchMemory();
  void AddSampleStack(uint32_t ref, BatchBuilder* batch);
  std::vector<SampledThread> ThreadsToSample();
  lull::v1::ProcessCounters Counters() const;
  // 0: it goes on recording.
  abi::EndedBy WhyEnded() const {
    return static_cast<abi::EndedBy>(
        segment_.header().ended.load(std::memory_order_relaxed));
  }

  lull::v1::ProcessInfo info_;
  UniqueFd pidfd_;
  char* base_;
  SegmentReader segment_;
  SpoolState* state_;
  std::unique_ptr<NativeSymbolizer> symbolizer_;
  Governor governor_;
  std::shared_ptr<GpuClock> gpu_clock_;
  std::optional<GpuSchedule> gpu_schedule_;  // always one
  bool armed_ = true;
  bool gpu_hold_ = false;
  RunDelaySampler run_delay_;
  HostSampler* sampler_;
  std::shared_ptr<const UniqueFd> memory_;
  SamplePlan samples_;  // as the sampler knows it
  uint64_t samples_planned_ns_ = 0;
  bool samples_tracing_ = false;     // by then
  uint32_t first_sample_stack_ = 0;  // what the sampler's numbers are added to
  lull::v1::HostSampleCounters sample_counters_;
  std::deque<HostSample> untold_samples_;  // taken, and in no batch yet
  uint64_t samples_complete_ns_ = 0;       // as of when there are no others
  // To be defined with the first sample that names them, by their reference.
  absl::flat_hash_map<uint32_t, lull::v1::StackDef> untold_stacks_;
  std::vector<lull::v1::StackDef> fresh_stacks_;  // defined in the batch under way
  lull::v1::ProcessCounters earlier_;             // what earlier workers found
  std::vector<Ring> rings_;                       // those that have been used
  Ring own_ring_;                                 // kRelayRing
  uint32_t takings_seen_ = 0;    // of rings, when the threads were last looked at
  bool threads_unseen_ = false;  // /proc did not tell which threads are gone

  Definitions definitions_;
  bool info_sent_ = false;  // in the batch under way or before
  bool info_committed_ = false;
  std::string counters_sent_;  // last told, without the time
  std::string counters_committed_;
  uint64_t counters_at_ns_ = 0;
  // A program that is not recorded took its place, as the sampler found.
  bool image_gone_ = false;
  uint64_t complete_as_of_ns_ = 0;  // all that was committed before it has been read
  bool ended_ = false;
  bool end_sent_ = false;
  bool end_spooled_ = false;
  bool corrupt_ = false;
  uint64_t events_read_ = 0;
  uint64_t events_lost_ = 0;
  std::vector<abi::Event> buffer_;
  std::vector<uint64_t> heads_;
};

}  // namespace lull::relay
