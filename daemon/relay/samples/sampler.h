// Looks at threads of targets from outside: where in Python they are, and whether they
// run. docs/host_samples.md says which threads, and how far the samples can be trusted.
//
// One thread of the worker does it, beside the one that reads rings. It holds no lock
// of anything that waits, and touches a target by reading alone: no stop, no signal.
// Whoever reads a target's memory waits while the target changes its mappings (a fork
// of many gigabytes takes seconds): that is this thread's business alone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/base/mutex.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/samples/allowance.h"
#include "daemon/relay/samples/layout.h"
#include "daemon/relay/samples/poisson.h"
#include "daemon/relay/samples/python_threads.h"
#include "daemon/relay/samples/reader.h"
#include "daemon/relay/samples/run_delay.h"
#include "daemon/relay/samples/thread_files.h"
#include "events.pb.h"

namespace lull::relay {

struct SampledThread {
  uint32_t tid = 0;  // as we see it
  v1::HostSampleRole role = v1::HOST_SAMPLE_ROLE_OTHER;
  uint64_t python_state = 0;   // 0: it is not known to run Python
  uint64_t python_thread = 0;  // its pthread_self()
  double share = 1;            // of its process's rate

  bool operator==(const SampledThread&) const = default;
};

// What is to be looked at in one process.
struct SamplePlan {
  pid_t pid = 0;                      // as we see it
  std::optional<FrameLayout> layout;  // none: its interpreter's frames cannot be read
  std::shared_ptr<const UniqueFd>
      memory;       // its own descriptor of itself, if it gave one
  double rate = 0;  // looks per second at each thread
  // abi::Armed of its segment: in a control step nobody looks. May be null.
  std::shared_ptr<const std::atomic<uint32_t>> armed;
  // The main thread first. `others`: whatever else runs Python there is looked at, too.
  std::vector<SampledThread> threads;
  bool others = false;
};

struct HostSample {
  uint64_t at_ns = 0;
  uint64_t weight_ns = 0;
  uint32_t tid = 0;
  uint32_t stack = 0;  // number of a stack of this process, 0 = none
  v1::HostSampleState state = v1::HOST_SAMPLE_STATE_RUNNING;
  v1::HostSampleQuality quality = v1::HOST_SAMPLE_QUALITY_FAILED;
  v1::HostSampleRole role = v1::HOST_SAMPLE_ROLE_OTHER;
  // Where it lacked a processor for more than a little since this was last told.
  std::optional<SchedulingLook> lacked;
};

struct TakenSamples {
  std::vector<HostSample> samples;
  std::vector<lull::v1::StackDef> stacks;  // that `samples` are the first to name
  lull::v1::HostSampleCounters counters;   // totals
  uint64_t complete_ns = 0;  // no sample of a time before it will come any more
  bool of_nobody = false;    // the process is gone, or has become another program
  bool news = false;         // false: nothing has changed, and the rest is left out
};

class HostSampler {
 public:
  explicit HostSampler(uint64_t seed);
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  // From now on the process is looked at according to `plan`. A plan without threads:
  // only whether it is still there (every kWatchPeriodNs); what is known about it
  // stays.
  void Follow(uint64_t process_key, SamplePlan plan);
  // What was sampled since the last call, if anything was.
  TakenSamples Take(uint64_t process_key);
  void Forget(uint64_t process_key);

 private:
  struct Process;
  struct Thread;

  void Run();
  void Rearrange(uint64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch(MutexLock* lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static bool FindOthers(Process* process, uint64_t now_ns);
  static void Skip(Thread* thread);
  Thread* Choose();
  std::optional<HostSample> TakeOne(Thread* thread, uint64_t due_ns);
  static void FindDelay(Thread* thread, Scheduling now, HostSample* sample);
  void Count(const HostSample& sample, uint64_t late_ns, Process* process);

  Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  // A look is being taken; 0: none is.
  uint64_t busy_since_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<Process>> processes_ ABSL_GUARDED_BY(mutex_);

  // The sampling thread's own.
  PoissonClock clock_;
  Allowance allowance_;
  uint64_t woke_ns_ = 0;     // when it last came from waiting
  uint64_t watched_ns_ = 0;  // when it was last asked who is still there
  double per_second_ = 0;    // of all threads
  std::vector<std::pair<std::shared_ptr<Process>, std::shared_ptr<Thread>>> threads_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lull::relay
