#include "daemon/relay/samples/thread_files.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/clock.h"

namespace lull::relay {
namespace {

TEST(ThreadFiles, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(ParseState("77 (pt) main) (x) R 1 77 77"), 'R');
  EXPECT_EQ(ParseState("77 (x) S"), 'S');
  EXPECT_EQ(ParseState("77 (x) "), '\0');
  EXPECT_EQ(ParseState(""), '\0');
  uint64_t switches = 0;
  EXPECT_TRUE(
      ParseAllSwitches("Name:\tx\nvoluntary_ctxt_switches:\t9\n"
                       "nonvoluntary_ctxt_switches:\t17\n",
                       &switches));
  EXPECT_EQ(switches, 26u);
  EXPECT_FALSE(ParseAllSwitches("voluntary_ctxt_switches:\t9\n", &switches));
  uint64_t last_ns = 0;
  const std::string head = "x (7, #threads: 1)\n-----\n";
  EXPECT_TRUE(ParseLastRun(head + "se.exec_start       :      15722.096431\n"
                                  "se.vruntime         :       2408.001410\n",
                           &last_ns));
  EXPECT_EQ(last_ns, 15'722'096'431u);
  for (const char* none :
       {"", "se.vruntime : 1.000001\n", "se.exec_start", "se.exec_start : 1\n",
        "se.exec_start : .\n", "se.exec_start : 1.1000000\n", "se.exec_start\n:1.1\n",
        "se.exec_start : -1.000000\n"}) {
    EXPECT_FALSE(ParseLastRun(none, &last_ns)) << none;
  }
}

// A thread of ours that spins, sleeps or waits for its end, on one processor.
class Worker {
 public:
  explicit Worker(int processor) {
    EXPECT_EQ(pipe(end_), 0);
    thread_ = std::thread([this, processor] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(processor, &set);
      sched_setaffinity(0, sizeof(set), &set);
      tid_ = static_cast<uint32_t>(syscall(SYS_gettid));
      while (!stop_) {
        char byte;
        if (waits_) (void)!read(end_[0], &byte, 1);
        if (sleeps_) usleep(20'000);
      }
    });
    while (tid_ == 0) usleep(100);
  }
  ~Worker() {
    stop_ = true;
    close(end_[1]);
    thread_.join();
    close(end_[0]);
  }
  void Sleep() { sleeps_ = true; }
  void WaitForTheEnd() { waits_ = true; }
  uint32_t tid() const { return tid_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<bool> sleeps_ = false;
  std::atomic<bool> waits_ = false;
  int end_[2];
  std::atomic<uint32_t> tid_ = 0;
  std::thread thread_;
};

int CountBlocked(ThreadFiles* files, int looks) {
  int count = 0;
  for (int i = 0; i < looks; ++i) {
    bool blocked = false;
    EXPECT_TRUE(files->Blocked(&blocked));
    count += blocked ? 1 : 0;
    usleep(500);
  }
  return count;
}

TEST(ThreadFiles, TellsABlockedThreadFromOneThatIsNot) {
  Worker worker(0);
  ThreadFiles files(getpid(), worker.tid());
  EXPECT_EQ(CountBlocked(&files, 100), 0);
  worker.WaitForTheEnd();
  bool blocked = false;
  while (!blocked) {
    ASSERT_TRUE(files.Blocked(&blocked));
    usleep(1'000);
  }
  EXPECT_EQ(CountBlocked(&files, 100), 100);
  EXPECT_EQ(files.Name().empty(), false);
}

TEST(ThreadFiles, CountsTheSlicesOfAThreadThatRuns) {
  Worker worker(0);
  worker.Sleep();
  ThreadFiles files(getpid(), worker.tid());
  Scheduling first, last;
  ASSERT_TRUE(files.Slices(&first));
  do {  // a busy machine lets it wait; ctest bounds that
    usleep(10'000);
    ASSERT_TRUE(files.Slices(&last));
  } while (last.slices == first.slices);
  EXPECT_GT(last.slices, first.slices);
}

// Two threads that share a processor: one of them waits for it.
TEST(ThreadFiles, TellsWhoWaitsForAProcessor) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one processor: we are in their place";
  Worker one(1), two(1);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof(set), &set);
  ThreadFiles first(getpid(), one.tid()), second(getpid(), two.tid());
  usleep(50'000);
  int ready = 0, both = 0;
  constexpr int kLooks = 200;
  for (int i = 0; i < kLooks; ++i) {
    bool blocked = false;
    ASSERT_TRUE(first.Blocked(&blocked) && second.Blocked(&blocked));
    const bool a = first.RunningOrReady(0) == v1::HOST_SAMPLE_STATE_READY;
    const bool b = second.RunningOrReady(0) == v1::HOST_SAMPLE_STATE_READY;
    ready += a || b ? 1 : 0;
    both += !a && !b ? 1 : 0;
    usleep(1'000);
  }
  sched_setaffinity(0, sizeof(before), &before);
  EXPECT_GT(ready, kLooks * 3 / 4) << both << " times both seemed to run";
}

TEST(ThreadFiles, CountsWhoWasPreempted) {
  Worker one(0), two(0);
  ThreadFiles files(getpid(), one.tid());
  Scheduling first, last;
  bool waits = false;
  int waited = 0;
  ASSERT_TRUE(files.Moves(&first, &waits));
  do {  // ctest bounds it
    usleep(1'000);
    ASSERT_TRUE(files.Slices(&last) && files.Moves(&last, &waits));
    EXPECT_EQ(last.processor, 0);
    waited += waits ? 1 : 0;
  } while (last.involuntary < first.involuntary + 3 || waited == 0);
}

// The same on the processor that we are on: one of them ran until we took its place.
TEST(ThreadFiles, TellsWhoWaitsForOurProcessor) {
  if (access("/proc/self/sched", R_OK) != 0) GTEST_SKIP() << "the kernel does not tell";
  cpu_set_t before, set;
  sched_getaffinity(0, sizeof(before), &before);
  Worker one(0), two(0);
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  sched_setaffinity(0, sizeof(set), &set);
  ThreadFiles first(getpid(), one.tid()), second(getpid(), two.tid());
  usleep(50'000);
  int ran = 0, ready = 0, neither = 0;
  constexpr int kLooks = 200;
  for (int i = 0; i < kLooks; ++i) {
    usleep(1'000);
    const uint64_t woke_ns = MonotonicNs();
    bool blocked = false;
    ASSERT_TRUE(first.Blocked(&blocked) && second.Blocked(&blocked));
    const bool a =
        first.RunningOrReady(MonotonicNs() - woke_ns) == v1::HOST_SAMPLE_STATE_READY;
    const bool b =
        second.RunningOrReady(MonotonicNs() - woke_ns) == v1::HOST_SAMPLE_STATE_READY;
    ran += a != b ? 1 : 0;
    ready += a || b ? 1 : 0;
    neither += !a && !b ? 1 : 0;
  }
  sched_setaffinity(0, sizeof(before), &before);
  printf("%d times one ran, %d times both waited, %d times neither\n", ran, ready - ran,
         neither);
  EXPECT_GT(ready, kLooks * 3 / 4);
  EXPECT_GT(ran, 0);
}

// There are no files: who is asked of them is told as running.
TEST(ThreadFiles, KnowsAWaitFromTheLastLook) {
  ThreadFiles none(getpid(), 0);
  auto state = [&](v1::HostSampleState last, Scheduling then, Scheduling now) {
    return none.RunningOrReady({then, last, 1'000'000}, now, 11'000'000, 0);
  };
  const Scheduling then{.delay_ns = 500, .slices = 7, .ran_ns = 90'000};
  Scheduling next = then;
  for (auto last : {v1::HOST_SAMPLE_STATE_BLOCKED, v1::HOST_SAMPLE_STATE_READY}) {
    EXPECT_EQ(state(last, then, then), v1::HOST_SAMPLE_STATE_READY);
    next.slices = 8;
    EXPECT_EQ(state(last, then, next), v1::HOST_SAMPLE_STATE_RUNNING);
    next.slices = 7;
    next.ran_ns = then.ran_ns + 1;
    EXPECT_EQ(state(last, then, next), v1::HOST_SAMPLE_STATE_RUNNING);
    next = then;
  }
  EXPECT_EQ(state(v1::HOST_SAMPLE_STATE_RUNNING, then, then),
            v1::HOST_SAMPLE_STATE_RUNNING)
      << "the files know better, and there are none";
}

TEST(ThreadFiles, SeesThatAThreadIsGone) {
  uint32_t tid = 0;
  auto worker = std::make_unique<Worker>(0);
  tid = worker->tid();
  ThreadFiles files(getpid(), tid);
  bool blocked = false;
  EXPECT_TRUE(files.Blocked(&blocked));
  worker.reset();
  // join() returns before the kernel has taken the thread out of /proc.
  const std::string folder = "/proc/self/task/" + std::to_string(tid);
  while (access(folder.c_str(), F_OK) == 0) usleep(1'000);
  EXPECT_FALSE(files.Blocked(&blocked));
  ThreadFiles late(getpid(), tid);
  Scheduling scheduling;
  EXPECT_FALSE(late.Slices(&scheduling));
  EXPECT_FALSE(late.Blocked(&blocked));
}

}  // namespace
}  // namespace lull::relay
