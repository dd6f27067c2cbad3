// The sampler, and the way of samples into batches, of threads of this very process
// that seem to run Python.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/procfs/address_space.h"
#include "daemon/relay/read/target.h"
#include "daemon/relay/samples/memory.h"
#include "daemon/relay/samples/sampler.h"
#include "preload/stacks/layouts/cpython_3_8.h"
#include "tests/daemon/relay/fake_segment.h"
#include "tests/daemon/relay/samples/fake_python.h"
#include "tests/trials.h"

namespace lull::relay {
namespace {

constexpr uint64_t kSelf = 5;

uint32_t OwnTid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// A thread that always runs.
class Runner {
 public:
  Runner()
      : thread_([this] {
          tid_ = OwnTid();
          while (!stop_) {
          }
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Runner() {
    stop_ = true;
    thread_.join();
  }
  uint32_t tid() const { return tid_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> tid_{0};
  std::thread thread_;
};

SamplePlan PlanOf(const FakePython& python, uint32_t tid, double rate) {
  SamplePlan plan;
  plan.pid = getpid();
  plan.layout = python.layout();
  plan.rate = rate;
  plan.threads.push_back(
      {tid, v1::HOST_SAMPLE_ROLE_MAIN, python.state(), python.thread()});
  return plan;
}

// All that comes until there are so many; false: they did not come.
bool TakeAtLeast(HostSampler* sampler, size_t wanted, TakenSamples* all) {
  const uint64_t deadline = MonotonicNs() + 60'000'000'000;
  while (all->samples.size() < wanted && MonotonicNs() < deadline) {
    usleep(2'000);
    TakenSamples taken = sampler->Take(kSelf);
    all->samples.insert(all->samples.end(), taken.samples.begin(), taken.samples.end());
    if (taken.news) all->counters = taken.counters;
    all->complete_ns = taken.complete_ns;
  }
  return all->samples.size() >= wanted;
}

// Two rings name the same thread where the number of one that is gone was given again.
// Each look stands for all of the thread's time, so that two are one too many.
TEST(SelfSampled, AThreadIsLookedAtOnceHoweverOftenItIsNamed) {
  FakePython python(kCPython38);
  python.SetStack({{python.AddCode("f", "/f.py", 1), 0}});
  Runner runner;
  SamplePlan plan = PlanOf(python, runner.tid(), 200);
  for (int i = 0; i < 50; ++i) plan.threads.push_back(plan.threads[0]);
  HostSampler sampler(3);
  sampler.Follow(kSelf, plan);
  TakenSamples all;
  ASSERT_TRUE(TakeAtLeast(&sampler, 5, &all));
  EXPECT_EQ(all.counters.threads(), 1u);
}

TEST(SelfSampled, AnInterpreterThatIsTakenBackIsReadNoMore) {
  FakePython python(kCPython38);
  python.SetStack({{python.AddCode("f", "/f.py", 1), 0}});
  Runner runner;
  HostSampler sampler(4);
  sampler.Follow(kSelf, PlanOf(python, runner.tid(), 200));
  TakenSamples all;
  ASSERT_TRUE(TakeAtLeast(&sampler, 3, &all));
  EXPECT_EQ(all.counters.no_state(), 0u);
  SamplePlan plan = PlanOf(python, runner.tid(), 200);
  plan.layout.reset();
  FakePython other(kCPython38);
  other.SetStack({{other.AddCode("f", "/f.py", 1), 0}});
  plan.threads[0].python_state = other.state();
  sampler.Follow(kSelf, plan);
  ASSERT_TRUE(TakeAtLeast(&sampler, all.samples.size() + 5, &all));
  EXPECT_EQ(all.samples.back().quality, v1::HOST_SAMPLE_QUALITY_NO_STATE);
}

// Memory that makes whoever reads it wait, until it is told to give it.
class SlowMemory {
 public:
  SlowMemory() : fd_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC))) {
    page_ = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    uffdio_api api = {UFFD_API, 0, 0};
    uffdio_register range = {{At(), kSize}, UFFDIO_REGISTER_MODE_MISSING, 0};
    works_ = fd_ && ioctl(fd_.get(), UFFDIO_API, &api) == 0 &&
             ioctl(fd_.get(), UFFDIO_REGISTER, &range) == 0;
  }
  ~SlowMemory() {
    Give();
    munmap(page_, kSize);
  }
  void Give() {
    uffdio_zeropage zero = {{At(), kSize}, 0, 0};
    if (works_) ioctl(fd_.get(), UFFDIO_ZEROPAGE, &zero);
  }
  bool works() const { return works_; }
  uint64_t At() const { return reinterpret_cast<uint64_t>(page_); }

 private:
  static constexpr size_t kSize = 4096;

  UniqueFd fd_;
  void* page_ = nullptr;
  bool works_ = false;
};

// What all other processes did is judged as of when no sample of before can come.
TEST(SelfSampled, ATargetThatHoldsUpItsMemoryHoldsUpNobodyElse) {
  SlowMemory slow;
  if (!slow.works()) GTEST_SKIP() << "no userfaultfd for us";
  FakePython python(kCPython38);
  Runner runner;
  SamplePlan plan = PlanOf(python, runner.tid(), 200);
  plan.threads[0].python_state = slow.At();
  HostSampler sampler(5);
  sampler.Follow(kSelf, plan);
  const uint64_t begin = MonotonicNs();
  const uint64_t deadline = begin + 60'000'000'000;
  uint64_t complete = 0;
  while (complete < begin + 2'000'000'000 && MonotonicNs() < deadline) {
    usleep(10'000);
    complete = sampler.Take(kSelf).complete_ns;
  }
  EXPECT_GE(complete, begin + 2'000'000'000);
  slow.Give();
  TakenSamples all;
  ASSERT_TRUE(TakeAtLeast(&sampler, 1, &all));
  for (const HostSample& sample : all.samples) EXPECT_GE(sample.at_ns, complete);
  EXPECT_GT(all.counters.skipped(), 0u);
}

// A target whose ring and interpreter are this process's.
class OwnTarget {
 public:
  OwnTarget(uint64_t state, uint64_t worker_of, HostSampler* sampler,
            std::shared_ptr<const UniqueFd> memory = nullptr) {
    abi::SegmentView view = segment_.view();
    view.header().pid = static_cast<uint32_t>(getpid());
    view.header().python_layout = kCPython38;
    view.header().python_code_type = 0x7f0000001000;
    EXPECT_TRUE(segment_.Commit(
        0, MakeEvent(abi::EventType::kThreadStart, static_cast<uint64_t>(getpid()))));
    view.owner(0) = abi::owner_word(0, static_cast<uint32_t>(getpid()));
    view.ring(0).python_state = state;
    view.ring(0).python_thread = static_cast<uint64_t>(pthread_self());
    TargetOptions options;
    options.sampler = sampler;
    options.memory = std::move(memory);
    lull::v1::ProcessInfo info;
    info.set_key(kSelf);
    info.set_pid(static_cast<uint32_t>(getpid()));
    info.set_worker_of(worker_of);
    target_ = *Target::Open(info, UniqueFd(dup(segment_.memfd())), UniqueFd(), options,
                            &spooled_);
  }
  // What the worker does with it in each pass.
  void Pass() {
    target_->CheckEnded();
    EXPECT_TRUE(target_->Read(&batch_));
    target_->FollowSamples(MonotonicNs(), /*tracing=*/true);
  }
  bool ended() const { return target_->ended(); }

 private:
  FakeSegment segment_;
  SpoolState spooled_;
  BatchBuilder batch_;
  std::unique_ptr<Target> target_;
};

// Its threads are looked for in its memory.
TEST(SelfSampled, AWorkerThatHoldsUpItsMemoryHoldsUpNoRing) {
  SlowMemory slow;
  if (!slow.works()) GTEST_SKIP() << "no userfaultfd for us";
  constexpr uint64_t kSomebodysWorker = 9;
  HostSampler sampler(7);
  OwnTarget target(slow.At(), kSomebodysWorker, &sampler);
  std::thread later([&slow] {
    sleep(5);
    slow.Give();
  });
  const uint64_t begin = MonotonicNs();
  for (int i = 0; i < 20; ++i) {
    target.Pass();
    usleep(50'000);
  }
  EXPECT_LT(MonotonicNs() - begin, uint64_t{4'000'000'000});
  later.join();
}

// A child with page tables of 64 MiB, all of one page of zeros, that forks again and
// again. Its memory cannot be read while it does.
pid_t StartForking() {
  constexpr size_t kBytes = size_t{32} << 30;
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, of Linux 5.14
  int ready[2];
  if (pipe(ready) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    void* zeros = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED || madvise(zeros, kBytes, MADV_NOHUGEPAGE) != 0 ||
        madvise(zeros, kBytes, kPopulateRead) != 0) {
      _exit(1);
    }
    *static_cast<volatile char*>(zeros) = 1;  // it is to be copied
    if (write(ready[1], "", 1) != 1) _exit(1);
    const pid_t parent = getppid();
    while (getppid() == parent) {
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(0);
      waitpid(grandchild, nullptr, 0);
    }
    _exit(0);
  }
  close(ready[1]);
  char byte;
  const bool works = read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  if (works) return child;
  waitpid(child, nullptr, 0);
  return -1;
}

// Longest time between two calls of `what`, over `seconds`.
template <typename What>
uint64_t LongestNs(double seconds, What what) {
  const uint64_t until = MonotonicNs() + static_cast<uint64_t>(seconds * 1e9);
  uint64_t longest = 0;
  for (uint64_t begin = MonotonicNs(); begin < until;) {
    what();
    const uint64_t end = MonotonicNs();
    longest = std::max(longest, end - begin);
    begin = end;
  }
  return longest;
}

TEST(SelfSampled, AProcessThatForksHoldsUpNoRing) {
  const pid_t child = StartForking();
  if (child < 0) GTEST_SKIP() << "no page tables that large here";
  const std::string path = "/proc/" + std::to_string(child) + "/mem";
  auto memory =
      std::make_shared<const UniqueFd>(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const uint64_t blocked = LongestNs(2, [&memory] { (void)IsOfNobody(*memory); });
  uint64_t longest = 0;
  {
    HostSampler sampler(8);
    FakePython python(kCPython38);
    OwnTarget target(python.state(), 0, &sampler, memory);
    longest = LongestNs(2, [&target] { target.Pass(); });
    EXPECT_FALSE(target.ended());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const uint64_t deadline = MonotonicNs() + 30'000'000'000;
    while (!target.ended() && MonotonicNs() < deadline) {
      target.Pass();
      usleep(10'000);
    }
    EXPECT_TRUE(target.ended()) << "its memory is nobody's now";
  }
  printf("read in %.1f ms at worst, a pass took %.1f\n",
         static_cast<double>(blocked) / 1e6, static_cast<double>(longest) / 1e6);
  if (blocked < 40'000'000) GTEST_SKIP() << "a fork is too fast here";
  EXPECT_LT(longest, blocked / 2);
}

// Each stack takes half a megabyte: a batch that took all would be refused for good.
TEST(SelfSampled, SamplesGoIntoAsManyBatchesAsTheyNeed) {
  FakePython python(kCPython38);
  const uint64_t outer =
      python.AddCode(std::string(1000, 'f'), std::string(3000, 'p'), 1);
  std::string table;
  for (int i = 0; i < 1000; ++i) table += "\x01\x01";
  std::vector<std::pair<uint64_t, int32_t>> frames(128, {outer, 0});
  frames[0].first = python.AddCode("inner", "/i.py", 1, table);
  python.SetStack(frames);

  FakeSegment segment;
  abi::SegmentView view = segment.view();
  view.header().pid = static_cast<uint32_t>(getpid());
  view.header().python_layout = kCPython38;
  view.header().python_code_type = python.layout().code_type;
  ASSERT_TRUE(segment.Commit(
      0, MakeEvent(abi::EventType::kThreadStart, static_cast<uint64_t>(getpid()))));
  view.owner(0) = abi::owner_word(0, static_cast<uint32_t>(getpid()));
  view.ring(0).python_state = python.state();
  view.ring(0).python_thread = python.thread();
  HostSampler sampler(6);
  TargetOptions options;
  options.sampler = &sampler;
  lull::v1::ProcessInfo info;
  info.set_key(kSelf);
  info.set_pid(static_cast<uint32_t>(getpid()));
  SpoolState state;
  auto target =
      Target::Open(info, UniqueFd(dup(segment.memfd())), UniqueFd(), options, &state);
  ASSERT_TRUE(target.ok());
  BatchBuilder batch;
  ASSERT_TRUE((*target)->Read(&batch));
  (*target)->FollowSamples(MonotonicNs(), /*tracing=*/true);

  std::set<uint32_t> defined;
  const size_t enough = Trials(size_t{20}, size_t{6}) << 20;
  size_t bytes = 0, batches = 0;
  bool lost = false;
  const uint64_t deadline = MonotonicNs() + 60'000'000'000;
  int32_t line = 0;
  while (bytes < enough && MonotonicNs() < deadline) {
    // The first thread of the process runs, and looks at nothing meanwhile.
    for (const uint64_t until = MonotonicNs() + 300'000'000; MonotonicNs() < until;) {
      python.GoTo(line++ / 64 % 2000);
    }
    for (bool all = false; !all;) {
      all = (*target)->Read(&batch);
      const lull::v1::Batch& made = *batch.batch();
      EXPECT_LE(made.ByteSizeLong(), 3 * kMaxBatchBytes);
      if (!lost && !all) {  // once there is no room for it
        lost = true;
        batch.Reset();
        (*target)->Drop();
        continue;
      }
      for (const auto& stacks : made.stacks()) {
        for (const auto& stack : stacks.stacks()) defined.insert(stack.ref());
      }
      for (const auto& ring : made.rings()) {
        for (uint32_t stack : ring.events().python_stack()) {
          EXPECT_TRUE(stack == 0 || defined.count(stack) == 1) << stack;
        }
      }
      bytes += made.ByteSizeLong();
      ++batches;
      state.Apply(made);
      batch.Reset();
      (*target)->Commit();
    }
  }
  EXPECT_TRUE(lost);
  EXPECT_GE(batches, Trials(10u, 3u));
  EXPECT_GE(bytes, enough);
}

}  // namespace
}  // namespace lull::relay
