#include "daemon/relay/samples/sampler.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "daemon/base/clock.h"
#include "daemon/base/thread.h"
#include "daemon/procfs/address_space.h"
#include "daemon/relay/samples/codes.h"
#include "daemon/relay/samples/early_turns.h"
#include "daemon/relay/samples/memory.h"
#include "daemon/relay/samples/rates.h"
#include "daemon/relay/samples/stack_table.h"
#include "preload/abi/states.h"

namespace lull::relay {
namespace {

constexpr uint64_t kAllowancePeriodNs = 50'000'000;
// What a collector takes; only thousands of threads on a sampler at its lowest rate are
// looked at more seldom.
constexpr double kMostWeightNs = 60e9;
// How often a thread that is gone is looked for.
constexpr uint64_t kLookAgainNs = 200'000'000;

uint64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

bool Rests(const SamplePlan& plan) {
  return plan.armed != nullptr &&
         plan.armed->load(std::memory_order_relaxed) == abi::kControlStep;
}

// Take() and whoever took the look must say the same of it: under the lock.
bool IsTooLong(uint64_t begin_ns, uint64_t now_ns) {
  return now_ns - begin_ns > kLongestLookNs;
}

std::chrono::steady_clock::time_point TimeOf(uint64_t monotonic_ns) {
  return std::chrono::steady_clock::time_point(
      std::chrono::nanoseconds(static_cast<int64_t>(monotonic_ns)));
}

}  // namespace

// What is known of a thread from one look to the next. The sampling thread's alone.
struct HostSampler::Thread {
  SampledThread what;
  ThreadFiles files;
  std::optional<StackReader> reader;
  Process* process;
  // From the last look.
  bool held = false;  // it was blocked all the while, and `stack` and `quality` hold
  LastLook last;
  uint32_t stack = 0;
  v1::HostSampleQuality quality = v1::HOST_SAMPLE_QUALITY_FAILED;
  uint64_t gone_ns = 0;  // since then there was none of its number, or none is known
  std::optional<uint64_t> told_delay_ns;  // of its counters
  uint64_t delayed_since_ns = 0;  // the look before the first that found more; 0: none

  Thread(pid_t pid, const SampledThread& sampled, Process* of)
      : what(sampled), files(pid, sampled.tid), process(of) {
    TellRole();
  }
  // Another one may have its number by now, and who plans sees no difference.
  void LookAgain(pid_t pid) {
    files = ThreadFiles(pid, what.tid);
    reader.reset();
    held = false;
    last.at_ns = gone_ns = delayed_since_ns = 0;
    told_delay_ns.reset();
    if (what.role == v1::HOST_SAMPLE_ROLE_AUTOGRAD)
      what.role = v1::HOST_SAMPLE_ROLE_FEEDER;
    TellRole();
  }
  void TellRole() {
    if (what.role != v1::HOST_SAMPLE_ROLE_FEEDER) return;
    const std::string name = files.Name();
    if (absl::StartsWith(name, "pt_autograd_"))
      what.role = v1::HOST_SAMPLE_ROLE_AUTOGRAD;
  }
};

struct HostSampler::Process {
  SamplePlan plan;     // guarded by the sampler's mutex
  TakenSamples taken;  // by it, too; `news`: since the last Take()

  // The sampling thread's.
  SamplePlan followed;
  std::optional<TargetMemory> memory;
  std::optional<CodeBook> codes;
  StackTable stacks;
  std::map<uint32_t, std::shared_ptr<Thread>> threads;
  std::optional<PythonThreads> python_threads;
  std::vector<PythonThread> others;
  uint64_t others_ns = 0;  // when it was last asked for them
  bool gone = false;       // its memory is nobody's
  uint64_t self_ns = 0;
};

HostSampler::HostSampler(uint64_t seed)
    : clock_(seed), thread_(StartThread([this] { Run(); })) {}

HostSampler::~HostSampler() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void HostSampler::Follow(uint64_t process_key, SamplePlan plan) {
  {
    MutexLock lock(mutex_);
    std::shared_ptr<Process>& process = processes_[process_key];
    if (process == nullptr) process = std::make_shared<Process>();
    process->plan = std::move(plan);
    changed_ = true;
  }
  wake_.notify_one();
}

void HostSampler::Forget(uint64_t process_key) {
  {
    MutexLock lock(mutex_);
    if (processes_.erase(process_key) == 0) return;
    changed_ = true;
  }
  wake_.notify_one();
}

TakenSamples HostSampler::Take(uint64_t process_key) {
  MutexLock lock(mutex_);
  TakenSamples out;
  auto found = processes_.find(process_key);
  if (found != processes_.end() && found->second->taken.news) {
    TakenSamples& taken = found->second->taken;
    out.news = std::exchange(taken.news, false);
    out.samples = std::exchange(taken.samples, {});
    out.stacks = std::exchange(taken.stacks, {});
    out.counters = taken.counters;
    out.of_nobody = taken.of_nobody;
  }
  const uint64_t now = MonotonicNs();
  out.complete_ns =
      busy_since_ns_ == 0 || IsTooLong(busy_since_ns_, now) ? now : busy_since_ns_;
  return out;
}

void HostSampler::Run() {
  prctl(PR_SET_NAME, "lull_sampler");
  prctl(PR_SET_TIMERSLACK, 1);
  AskForEarlyTurns();
  uint64_t allowance_ns = 0;
  uint64_t accounted_ns = ThreadCpuNs();
  MutexLock lock(mutex_);
  while (!stop_) {
    const uint64_t now = MonotonicNs();
    if (changed_ || now - allowance_ns >= kAllowancePeriodNs) {
      allowance_ns = now;
      allowance_.Update(now, ThreadCpuNs());
      Rearrange(now);
    }
    if (now - watched_ns_ >= kWatchPeriodNs && !processes_.empty()) {
      Watch(&lock);
      watched_ns_ = MonotonicNs();  // a slow look is not followed by the next at once
      continue;
    }
    uint64_t due = clock_.due_ns();
    if (due > now) {
      if (processes_.empty()) {
        wake_.wait(lock.native());
      } else {
        wake_.wait_until(lock.native(),
                         TimeOf(std::min(due, watched_ns_ + kWatchPeriodNs)));
      }
      woke_ns_ = MonotonicNs();
      continue;
    }
    Thread* thread = Choose();
    clock_.Next();
    // Many looks at one moment tell nothing of the time that they stand for.
    while (now - due > kLateNs && clock_.due_ns() <= now) {
      if (thread != nullptr && !Rests(thread->process->followed)) Skip(thread);
      due = clock_.due_ns();
      thread = Choose();
      clock_.Next();
    }
    if (thread == nullptr || Rests(thread->process->followed)) continue;
    busy_since_ns_ = now;
    lock.Unlock();
    std::optional<HostSample> sample = TakeOne(thread, due);
    Process* process = thread->process;
    const bool others_changed = FindOthers(process, now);
    const uint64_t cpu_ns = ThreadCpuNs();
    lock.Lock();
    busy_since_ns_ = 0;
    changed_ = changed_ || others_changed;
    if (process->gone) process->taken.of_nobody = process->taken.news = true;
    process->self_ns += cpu_ns - std::exchange(accounted_ns, cpu_ns);
    if (!sample) continue;
    if (IsTooLong(now, MonotonicNs())) {
      Skip(thread);
      continue;
    }
    for (auto& stack : process->stacks.TakeNew()) {
      process->taken.stacks.push_back(std::move(stack));
    }
    process->taken.samples.push_back(*sample);
    Count(*sample, now - due, process);
  }
}

// What is looked at, and how often. Under the lock.
void HostSampler::Rearrange(uint64_t now_ns) {
  if (changed_) {
    changed_ = false;
    threads_.clear();
    for (auto& [key, process] : processes_) {
      const SamplePlan& plan = process->followed = process->plan;
      if (!process->memory) process->memory.emplace(plan.pid, plan.memory);
      if (!process->codes && plan.layout) process->codes.emplace(*plan.layout);
      std::map<uint32_t, std::shared_ptr<Thread>> threads;
      std::vector<SampledThread> all = plan.threads;
      for (const PythonThread& other : process->others) {
        if (!plan.others || all.empty()) break;
        all.push_back({other.tid, v1::HOST_SAMPLE_ROLE_OTHER, other.state, other.thread,
                       kHelperShare});
      }
      for (const SampledThread& wanted : all) {
        if (threads.size() >= kMostThreads) break;
        // Once, whatever the rings say: each look stands for all of its time.
        auto [place, first] = threads.try_emplace(wanted.tid);
        if (!first) continue;
        std::shared_ptr<Thread>& thread = place->second;
        auto known = process->threads.find(wanted.tid);
        if (known != process->threads.end()) {
          thread = known->second;
          thread->what.python_state = wanted.python_state;
          thread->what.python_thread = wanted.python_thread;
          thread->what.share = wanted.share;
        } else {
          thread = std::make_shared<Thread>(plan.pid, wanted, process.get());
          process->taken.counters.set_threads(process->taken.counters.threads() + 1);
          process->taken.news = true;
        }
        if (plan.rate > 0) threads_.emplace_back(process, thread);
      }
      process->threads = std::move(threads);
    }
  }
  double wanted = 0;
  for (auto& [process, thread] : threads_) {
    wanted += process->followed.rate * thread->what.share;
  }
  per_second_ = wanted;
  clock_.SetRate(std::min(wanted, kMostPerSecond) * allowance_.factor(), now_ns);
}

// Who is still there. Not under the lock while it is asked.
void HostSampler::Watch(MutexLock* lock) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  std::vector<std::shared_ptr<Process>> watched;
  for (auto& [key, process] : processes_) {
    if (process->plan.memory != nullptr && !process->taken.of_nobody) {
      watched.push_back(process);
    }
  }
  for (const std::shared_ptr<Process>& process : watched) {
    const std::shared_ptr<const UniqueFd> memory = process->plan.memory;
    lock->Unlock();
    const bool gone = IsOfNobody(*memory);
    lock->Lock();
    if (gone) process->taken.of_nobody = process->taken.news = true;
  }
}

// Threads of a DataLoader worker that run Python, but for the main one, which the plan
// has. True: they are others than before.
bool HostSampler::FindOthers(Process* process, uint64_t now_ns) {
  const SamplePlan& plan = process->followed;
  if (!plan.others || plan.threads.empty() || !plan.layout || process->gone ||
      now_ns - process->others_ns < kOthersPeriodNs) {
    return false;
  }
  process->others_ns = now_ns;
  if (!process->python_threads) process->python_threads.emplace(plan.pid, plan.memory);
  const SampledThread& main = plan.threads.front();
  std::vector<PythonThread> found = process->python_threads->Others(
      *plan.layout, main.python_state, main.python_thread);
  const bool changed = found != process->others;
  process->others = std::move(found);
  return changed;
}

void HostSampler::Skip(Thread* thread) {
  if (thread == nullptr) return;
  thread->process->taken.news = true;
  lull::v1::HostSampleCounters& counters = thread->process->taken.counters;
  counters.set_skipped(counters.skipped() + 1);
}

// One of all threads, each as likely as its share of the looks is.
HostSampler::Thread* HostSampler::Choose() {
  double at = clock_.Uniform() * per_second_;
  for (auto& [process, thread] : threads_) {
    at -= process->followed.rate * thread->what.share;
    if (at < 0) return thread.get();
  }
  return threads_.empty() ? nullptr : threads_.back().second.get();
}

// nullopt: the thread is gone.
std::optional<HostSample> HostSampler::TakeOne(Thread* thread, uint64_t due_ns) {
  Process& process = *thread->process;
  if (thread->gone_ns != 0) {
    if (MonotonicNs() - thread->gone_ns < kLookAgainNs) return std::nullopt;
    thread->LookAgain(process.followed.pid);
  }
  HostSample sample;
  sample.tid = thread->what.tid;
  sample.role = thread->what.role;
  // By its rate when it was due. That is today's rate: rates change between looks.
  const double rate = process.followed.rate * thread->what.share;
  sample.weight_ns = static_cast<uint64_t>(
      std::min(1e9 * per_second_ / (clock_.rate() * rate), kMostWeightNs));
  sample.at_ns = std::max(MonotonicNs(), due_ns);
  Scheduling before;
  bool blocked = false;
  const bool sliced = thread->files.Slices(&before);
  if (!thread->files.Blocked(&blocked)) {
    thread->gone_ns = MonotonicNs();
    return std::nullopt;
  }
  sample.state =
      blocked ? v1::HOST_SAMPLE_STATE_BLOCKED : v1::HOST_SAMPLE_STATE_RUNNING;
  if (blocked && sliced && thread->held &&
      thread->last.scheduling.slices == before.slices) {
    sample.stack = thread->stack;
    sample.quality = thread->quality == v1::HOST_SAMPLE_QUALITY_EXACT
                         ? v1::HOST_SAMPLE_QUALITY_HELD
                         : thread->quality;
    thread->last.at_ns = sample.at_ns;
    return sample;
  }
  if (!blocked && sliced && thread->last.at_ns != 0) {
    sample.state = thread->files.RunningOrReady(thread->last, before, sample.at_ns,
                                                MonotonicNs() - woke_ns_);
  }
  if (sliced && process.followed.rate >= kDenseRate) FindDelay(thread, before, &sample);

  const SampledThread& what = thread->what;
  if (process.codes && process.followed.layout && what.python_state != 0) {
    if (!thread->reader ||
        !thread->reader->IsFor(what.python_state, what.python_thread)) {
      thread->reader.emplace(*process.followed.layout, what.python_state,
                             what.python_thread);
    }
    Look look = thread->reader->Take(&*process.memory, &*process.codes);
    sample.quality = look.quality;
    if (look.begin_ns != 0) {
      sample.at_ns = look.begin_ns + (look.end_ns - look.begin_ns) / 2;
    }
    if (!look.frames.empty()) {
      sample.stack = process.stacks.Number(look, &*process.codes);
      if (sample.stack == 0)
        sample.quality = v1::HOST_SAMPLE_QUALITY_FAILED;  // no room
    }
  } else {
    sample.quality = v1::HOST_SAMPLE_QUALITY_NO_STATE;
  }
  Scheduling after;
  const bool still_there = thread->files.Slices(&after);
  // What was read may be of the thread that took its place.
  if (sliced && !still_there) return std::nullopt;
  // Or of another program, at the old addresses.
  const auto& memory = process.followed.memory;
  if (process.gone || (memory != nullptr && IsOfNobody(*memory))) {
    process.gone = true;
    return std::nullopt;
  }
  const bool ran = !sliced || after.slices != before.slices;
  if (blocked && ran) sample.state = v1::HOST_SAMPLE_STATE_RUNNING;
  thread->held = blocked && !ran && sample.quality != v1::HOST_SAMPLE_QUALITY_FAILED &&
                 sample.quality != v1::HOST_SAMPLE_QUALITY_CUT;
  // It may be on a processor in the slice that began.
  thread->last = {after, ran ? v1::HOST_SAMPLE_STATE_RUNNING : sample.state,
                  sample.at_ns};
  thread->stack = sample.stack;
  thread->quality = sample.quality;
  return sample;
}

// A window alone needs to know it this well, and of threads that may feed a GPU.
void HostSampler::FindDelay(Thread* thread, Scheduling now, HostSample* sample) {
  if (sample->role == v1::HOST_SAMPLE_ROLE_LOADER ||
      sample->role == v1::HOST_SAMPLE_ROLE_OTHER) {
    return;
  }
  if (!thread->told_delay_ns) thread->told_delay_ns = now.delay_ns;
  if (now.delay_ns - *thread->told_delay_ns < kLittleDelayNs) return;
  if (thread->delayed_since_ns == 0) thread->delayed_since_ns = thread->last.at_ns;
  // That it was pre-empted belongs to the delay, which counts from its end on. What
  // Moves() says of that holds for a thread, too, whose processor we took.
  if (sample->state == v1::HOST_SAMPLE_STATE_READY) return;
  bool waits_or_made_room = false;
  if (!thread->files.Moves(&now, &waits_or_made_room)) return;
  sample->lacked = SchedulingLook{thread->delayed_since_ns, sample->at_ns, now};
  thread->delayed_since_ns = 0;
  thread->told_delay_ns = now.delay_ns;
}

void HostSampler::Count(const HostSample& sample, uint64_t late_ns, Process* process) {
  process->taken.news = true;
  lull::v1::HostSampleCounters& out = process->taken.counters;
  out.set_taken(out.taken() + 1);
  switch (sample.quality) {
    case v1::HOST_SAMPLE_QUALITY_EXACT:
      out.set_exact(out.exact() + 1);
      break;
    case v1::HOST_SAMPLE_QUALITY_HELD:
      out.set_held(out.held() + 1);
      break;
    case v1::HOST_SAMPLE_QUALITY_CUT:
      out.set_cut(out.cut() + 1);
      break;
    case v1::HOST_SAMPLE_QUALITY_NO_STATE:
      out.set_no_state(out.no_state() + 1);
      break;
    default:
      out.set_failed(out.failed() + 1);
  }
  if (late_ns > kLateNs) out.set_late(out.late() + 1);
  out.set_late_ns(out.late_ns() + late_ns);
  out.set_self_ns(process->self_ns);
  out.set_lowered(allowance_.lowered());
  const v1::HostSampleAccess access = process->memory->access();
  const bool tried = access != v1::HOST_SAMPLE_ACCESS_UNTRIED || process->codes;
  out.set_access(tried ? access : v1::HOST_SAMPLE_ACCESS_LAYOUT);
}

}  // namespace lull::relay
