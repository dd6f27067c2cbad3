// One process image that is being read: its segment, how far each ring has been
// read, what the collector knows by now.
//
// Reading and committing are two steps. Read() copies events into a batch;
// Commit() says that the batch is in the spool, and only then gives the slots back
// to the writer; Drop() says that there was no room for it.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/deliver/spool_state.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/definitions.h"
#include "daemon/relay/read/host_use.h"
#include "daemon/relay/read/segment_reader.h"
#include "daemon/relay/read/target_control.h"
#include "daemon/relay/read/target_counters.h"
#include "daemon/relay/read/target_rings.h"
#include "daemon/relay/read/target_samples.h"
#include "daemon/relay/samples/run_delay.h"
#include "daemon/relay/samples/sampler.h"
#include "daemon/relay/symbols/async_symbolizer.h"

namespace lull::relay {

struct TargetOptions {
  v1::JobSettings settings;
  AsyncSymbolizer* symbols = nullptr;  // is told of native stacks; must outlive this
  GpuPlan gpu;
  std::shared_ptr<GpuClock> gpu_clock;  // of the job; null: one of its own
  bool armed = true;
  HostSampler* sampler = nullptr;  // null: no thread is looked at; must outlive this
  std::shared_ptr<const UniqueFd> memory;  // its own descriptor of itself; may be null
  bool attached = false;                   // the watch may be over after seconds
};

class Target {
 public:
  // Maps the segment, goes on where `state` and the rings' tails say, arms it or puts
  // it to sleep.
  // `state` must outlive this.
  static absl::StatusOr<std::unique_ptr<Target>> Open(v1::ProcessInfo info,
                                                      UniqueFd memfd, UniqueFd pidfd,
                                                      const TargetOptions& options,
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
  // By `by_ns` it had ended; nothing of it that was read is later all the same.
  void SetImageEnded(uint64_t by_ns) {
    ended_ = true;
    ended_by_ns_ = std::min(ended_by_ns_, by_ns);
  }

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

  // Gives back the rings of threads that are gone; a few times a second.
  void FreeRings();
  // Adds what the threads that submit GPU work waited for processors, when that is due.
  void FollowRunDelay(BatchBuilder* batch, uint64_t now_ns);
  void SampleRunDelay(BatchBuilder* batch, uint64_t now_ns);
  // Has the threads looked at that are to be, as often as they are to be; often.
  // `tracing`: GPU work that they have to do with is being traced.
  void FollowSamples(uint64_t now_ns, bool tracing);
  bool IsTracing() const;
  // Whose DataLoader worker it is; 0: nobody's. Its segment is the relay's own.
  uint64_t worker_of() const { return info_.worker_of(); }

  // As TargetControl has them; an end or a damaged segment is heeded.
  void Arm(const GpuPlan& gpu, uint64_t now_ns);
  void Disarm(uint64_t now_ns);
  void GoOnIfUnread(uint64_t now_ns);
  void Govern(uint64_t now_ns);  // a few times a second
  void Drive(uint64_t now_ns);   // often
  // The next AddCounters() adds them though nothing has changed: a sign of life.
  void RepeatCounters() { counters_.Repeat(); }

  // The fullest ring: committed events that are not given back yet.
  uint64_t Backlog() const { return corrupt_ ? 0 : rings_.Backlog(); }
  bool IsShortOfRoom() const { return !corrupt_ && rings_.IsShortOfRoom(); }
  uint64_t events_read() const { return events_read_; }
  uint64_t events_lost() const { return rings_.lost(); }
  bool end_is_spooled() const { return end_spooled_; }

 private:
  Target(v1::ProcessInfo info, UniqueFd pidfd, std::shared_ptr<char> base,
         const TargetOptions& options, SpoolState* state);
  void Resume();
  bool HasExited() const;
  bool ReadRing(uint32_t ring, uint64_t head, BatchBuilder* batch);
  // How many of `count` events can be taken at once: same thread, nothing that
  // cannot be, what they refer to defined. Stops early when the batch is full or the
  // segment corrupt.
  size_t TakeRun(TargetRing* ring, abi::Event* events, size_t count,
                 BatchBuilder* batch);
  void Notice(const abi::Event& event, TargetRing* ring);
  void AddRests(BatchBuilder* batch);
  void GiveUp();
  bool SeesItsThreads() const;
  std::vector<SampledThread> ThreadsToSample();
  v1::ProcessCounters Counters() const;

  v1::ProcessInfo info_;
  UniqueFd pidfd_;
  // The mapping. The sampler may hold it a bit longer.
  const std::shared_ptr<char> base_;
  SegmentReader segment_;
  SpoolState* state_;
  AsyncSymbolizer* const symbols_;
  TargetControl control_;
  RunDelaySampler run_delay_;
  HostUseReader host_use_;
  TargetSamples samples_;
  v1::ProcessCounters earlier_;  // what earlier workers found
  TargetRings rings_;

  Definitions definitions_;
  uint32_t python_version_ = 0;  // as in the segment
  bool info_sent_ = false;       // in the batch under way or before
  bool info_committed_ = false;
  CounterReport counters_;
  uint64_t complete_as_of_ns_ = 0;  // all that was committed before it has been read
  bool ended_ = false;
  uint64_t ended_by_ns_ = UINT64_MAX;
  uint64_t last_end_ns_ = 0;  // of the events that were read, about
  bool end_sent_ = false;
  size_t rests_added_ = 0;  // to the present batch
  bool end_spooled_ = false;
  bool corrupt_ = false;
  uint64_t events_read_ = 0;
  std::vector<abi::Event> buffer_;
  std::vector<uint64_t> heads_;
};

}  // namespace lull::relay
