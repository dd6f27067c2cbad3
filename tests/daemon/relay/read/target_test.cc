#include "daemon/relay/read/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/clock.h"
#include "tests/daemon/relay/fake_segment.h"
#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

using abi::EventType;

class TargetTest : public ::testing::Test {
 protected:
  void SetUp() override { Open({}); }

  void Open(const TargetOptions& options, pid_t pid = getpid(), UniqueFd pidfd = {}) {
    lull::v1::ProcessInfo info;
    info.set_key(1);
    info.set_pid(static_cast<uint32_t>(pid));
    auto target = Target::Open(info, UniqueFd(dup(segment_.memfd())), std::move(pidfd),
                               options, &state_);
    ASSERT_TRUE(target.ok());
    target_ = *std::move(target);
  }

  // As Spool::Append() and Worker::Flush() do.
  void Deliver() {
    state_.Apply(*batch_.batch());
    batch_.Reset();
    target_->Commit();
  }
  void Lose() {
    batch_.Reset();
    target_->Drop();
  }

  lull::v1::ProcessCounters Counters() {
    clock_ += kSecond;
    BatchBuilder batch;
    target_->AddCounters(&batch, clock_, /*final=*/true);
    return batch.batch()->counters_size() == 0 ? lull::v1::ProcessCounters()
                                               : batch.batch()->counters(0);
  }
  lull::v1::RingCounters CountersOf(uint32_t number) {
    const lull::v1::ProcessCounters counters = Counters();
    for (const auto& ring : counters.rings()) {
      if (ring.ring() == number) return ring;
    }
    return {};
  }

  FakeSegment segment_;
  SpoolState state_;
  std::unique_ptr<Target> target_;
  BatchBuilder batch_;
  uint64_t clock_ = kSecond;
};

TEST_F(TargetTest, CountersAreNotAsOfAReadingThatLeftSomething) {
  for (uint32_t ring = 0; ring < 4; ++ring) {
    while (segment_.Commit(ring, MakeEvent(EventType::kLaunch, 1))) {
    }
  }
  segment_.view().ring(0).lost = 17;
  uint64_t committed = MonotonicNs();
  ASSERT_FALSE(target_->Read(&batch_)) << "a batch is full before four rings are read";
  EXPECT_EQ(Counters().rings_size(), 0) << "as of no time, which nobody would take";
  Deliver();
  while (!target_->Read(&batch_)) Deliver();
  lull::v1::ProcessCounters counters = Counters();
  EXPECT_GT(counters.as_of_ns() + 10'000, committed);
  ASSERT_EQ(counters.rings_size(), 4);
  EXPECT_EQ(counters.rings(0).lost_full(), 17u);
}

// One thread commits while the other reads, until it happened that something was
// committed between a reading and the look at it: on a machine without time that may
// take a while.
TEST_F(TargetTest, WhatWasCommittedBeforeTheTimeOfTheCountersHasBeenRead) {
  constexpr uint64_t kAhead = 4096;  // unread at most: one batch has room for more
  constexpr uint64_t kKept = 2 * kAhead;
  std::vector<std::atomic<uint64_t>> committed_at(kKept);
  std::atomic<uint64_t> committed = 0;
  std::atomic<uint64_t> delivered = 0;
  std::atomic<bool> enough = false;
  std::thread writer([&] {
    for (uint64_t i = 0; !enough;) {
      if (i - delivered.load(std::memory_order_acquire) >= kAhead) {
        std::this_thread::yield();
        continue;
      }
      uint32_t ring = i % 2 == 0 ? 0 : 63;  // read first and last
      ASSERT_TRUE(segment_.Commit(ring, MakeEvent(EventType::kLaunch, i)));
      committed_at[i % kKept].store(MonotonicNs(), std::memory_order_release);
      committed.store(++i, std::memory_order_release);
    }
  });
  std::array<uint64_t, 2> read = {};
  uint64_t checked = 0;
  uint64_t missed = 0;
  const uint64_t deadline = MonotonicNs() + 60 * kSecond;
  bool all = true;
  while (all && checked < 10'000 && MonotonicNs() < deadline) {
    all = target_->Read(&batch_);
    for (const auto& run : batch_.batch()->rings()) {
      read[run.ring() == 0 ? 0 : 1] += static_cast<uint64_t>(run.events().type_size());
    }
    Deliver();
    EXPECT_TRUE(all);
    uint64_t as_of = Counters().as_of_ns();
    const uint64_t end = committed.load(std::memory_order_acquire);
    for (uint64_t i = std::min(2 * read[0], 2 * read[1] + 1); i < end; ++i) {
      if (i / 2 < read[i % 2]) continue;
      missed += committed_at[i % kKept].load(std::memory_order_acquire) < as_of ? 1 : 0;
      ++checked;
    }
    delivered.store(read[0] + read[1], std::memory_order_release);
  }
  enough = true;
  writer.join();
  EXPECT_GT(checked, 0u) << "some were committed meanwhile";
  EXPECT_EQ(missed, 0u) << "committed before the time, and not read";
}

TEST_F(TargetTest, DropsEventsWhoseTimesCannotBeAndGoesOn) {
  abi::Event late = MakeEvent(EventType::kSync, 1, ~uint64_t{0});
  abi::Event endless = MakeEvent(EventType::kSync, 2);
  endless.duration_ns = ~uint64_t{0} >> 1;
  abi::Event unknown = MakeEvent(static_cast<EventType>(abi::kEventTypeCount), 3);
  abi::Event foreign = MakeEvent(kRunDelayType, 4);  // the relay's own
  for (const abi::Event& event :
       {late, MakeEvent(EventType::kSync, 5), endless, unknown, foreign}) {
    ASSERT_TRUE(segment_.Commit(0, event));
  }
  ASSERT_TRUE(target_->Read(&batch_));
  ASSERT_EQ(batch_.events(), 1u);
  EXPECT_EQ(batch_.batch()->rings(0).events().arg0(0), 5u);
  EXPECT_EQ(batch_.batch()->rings(0).events().first_position(), 1u);
  lull::v1::RingCounters counters = CountersOf(0);
  EXPECT_EQ(counters.committed(), 5u);
  EXPECT_EQ(counters.lost_relay(), 4u);
  EXPECT_FALSE(target_->corrupt());
}

TEST_F(TargetTest, KeepsTotalsThatNoStoreCouldHoldFromTheWire) {
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  segment_.view().header().gpu_self_ns = ~uint64_t{0};
  segment_.view().header().cupti_dropped = 7;
  segment_.view().header().cupti_state = 99;  // of a later version
  segment_.view().ring(0).self_ns = ~uint64_t{0};
  segment_.view().ring(0).short_waits = 1;
  segment_.view().ring(0).head = ~uint64_t{0};
  lull::v1::ProcessCounters counters = Counters();
  EXPECT_EQ(counters.gpu_self_ns(), ~uint64_t{0} >> 1);
  EXPECT_EQ(counters.cupti_dropped(), 7u);
  EXPECT_EQ(static_cast<int>(counters.cupti_state()), 99);
  EXPECT_EQ(counters.rings(0).self_ns(), ~uint64_t{0} >> 1);
  EXPECT_LE(counters.rings(0).committed(), 1 + abi::kRingEvents);
}

// As the shim does: the number of the taking makes two owners of one thread id.
void TakeRing(const abi::SegmentView& view, uint32_t ring, uint32_t tid) {
  uint32_t taking = view.header().rings_taken.fetch_add(1);
  view.owner(ring) = abi::owner_word(taking, tid);
}

// The kernel wakes who joins a thread before it is gone.
void WaitUntilGone(uint32_t tid) {
  while (syscall(SYS_tgkill, getpid(), tid, 0) == 0) std::this_thread::yield();
}

uint32_t ThreadThatIsGone() {
  uint32_t tid = 0;
  std::thread([&] { tid = static_cast<uint32_t>(gettid()); }).join();
  WaitUntilGone(tid);
  return tid;
}

TEST_F(TargetTest, GivesBackTheRingOfAThreadThatIsGoneOnceAllIsReleased) {
  abi::SegmentView view = segment_.view();
  TakeRing(view, 0, ThreadThatIsGone());
  TakeRing(view, 1, static_cast<uint32_t>(gettid()));
  for (uint32_t ring : {0, 1}) segment_.Commit(ring, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  target_->FreeRings();
  target_->FreeRings();
  EXPECT_NE(view.owner(0), abi::kFreeRing) << "read, and not in the spool yet";
  Deliver();
  target_->FreeRings();
  EXPECT_EQ(view.owner(0), abi::kFreeRing);
  EXPECT_NE(view.owner(1), abi::kFreeRing);
  EXPECT_FALSE(Counters().threads_unseen());
}

TEST_F(TargetTest, KnowsTheRingOfAThreadWhoseNumberIsAnothersByNow) {
  abi::SegmentView view = segment_.view();
  auto tid = static_cast<uint32_t>(gettid());
  TakeRing(view, 0, tid);
  TakeRing(view, 1, tid);
  for (uint32_t ring : {0, 1}) segment_.Commit(ring, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  Deliver();
  target_->FreeRings();
  target_->FreeRings();
  EXPECT_EQ(view.owner(0), abi::kFreeRing);
  EXPECT_NE(view.owner(1), abi::kFreeRing);
}

TEST_F(TargetTest, LooksAtThreadsAgainOnlyWhenOthersHaveCome) {
  abi::SegmentView view = segment_.view();
  std::atomic<bool> leave{false};
  std::atomic<uint32_t> tid{0};
  std::thread thread([&] {
    tid = static_cast<uint32_t>(gettid());
    while (!leave) std::this_thread::yield();
  });
  while (tid == 0) std::this_thread::yield();
  TakeRing(view, 0, tid);
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  Deliver();
  target_->FreeRings();
  leave = true;
  thread.join();
  WaitUntilGone(tid);
  target_->FreeRings();
  target_->FreeRings();
  EXPECT_NE(view.owner(0), abi::kFreeRing);
  TakeRing(view, 1, static_cast<uint32_t>(gettid()));
  target_->FreeRings();
  target_->FreeRings();
  EXPECT_EQ(view.owner(0), abi::kFreeRing);
}

TEST_F(TargetTest, SaysThatItCannotSeeTheThreads) {
  constexpr pid_t kNobody = 0x3fffffff;
  Open({}, kNobody);
  segment_.view().header().pid = kNobody;
  TakeRing(segment_.view(), 0, ThreadThatIsGone());
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  Deliver();
  target_->FreeRings();
  target_->FreeRings();
  EXPECT_NE(segment_.view().owner(0), abi::kFreeRing);
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_TRUE(Counters().threads_unseen());
}

TEST_F(TargetTest, MissesNoThreadsInAProcessThatHasJustEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(pidfd);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Open({}, child, std::move(pidfd));
  segment_.view().header().pid = static_cast<uint32_t>(child);
  TakeRing(segment_.view(), 0, static_cast<uint32_t>(child));
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  Deliver();
  target_->FreeRings();
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_FALSE(Counters().threads_unseen());
}

TEST_F(TargetTest, DoesNotWakeAProcessThatHasNoMemoryForItsRings) {
  abi::SegmentView view = segment_.view();
  view.header().ended = static_cast<uint32_t>(abi::EndedBy::kNoMemory);
  view.control().armed = 0;
  target_->Arm(GpuPlan{}, clock_);
  EXPECT_EQ(view.control().armed, 0u);
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_TRUE(Counters().no_memory());
  EXPECT_FALSE(Counters().seccomp_filter());
}

TEST_F(TargetTest, DoesNotWakeAProcessThatInstalledASeccompFilter) {
  abi::SegmentView view = segment_.view();
  view.header().ended = static_cast<uint32_t>(abi::EndedBy::kFilter);
  view.control().armed = 0;
  target_->Arm(GpuPlan{}, clock_);
  EXPECT_EQ(view.control().armed, 0u);
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_TRUE(Counters().seccomp_filter());
  EXPECT_FALSE(Counters().no_memory());
}

TEST_F(TargetTest, WakesAProcessUpThatFellAsleepForWantOfAReader) {
  abi::SegmentView view = segment_.view();
  const uint32_t arming = view.control().arming;
  view.header().ended = static_cast<uint32_t>(abi::EndedBy::kUnread);
  target_->GoOnIfUnread(clock_);
  EXPECT_EQ(view.control().arming, arming) << "it is about to fall asleep";
  view.control().armed = 0;
  target_->GoOnIfUnread(clock_);
  EXPECT_EQ(view.control().armed, 1u);
  EXPECT_EQ(view.control().arming, arming + 1) << "steps and windows begin anew";
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_TRUE(Counters().unread());
  target_->Disarm(clock_);
  target_->GoOnIfUnread(clock_);
  EXPECT_EQ(view.control().armed, 0u);
  target_->Arm(GpuPlan{}, clock_);
  EXPECT_EQ(view.control().armed, 1u);
}

// The rests that the batch tells, as (start, duration).
std::vector<std::pair<uint64_t, uint64_t>> RestsIn(const v1::Batch& batch) {
  std::vector<std::pair<uint64_t, uint64_t>> rests;
  for (const v1::RingBatch& run : batch.rings()) {
    uint64_t start = run.events().base_ns();
    for (int i = 0; i < run.events().type_size(); ++i) {
      start += static_cast<uint64_t>(run.events().start_delta_ns(i));
      if (run.events().type(i) != v1::EVENT_TYPE_STEP) continue;
      EXPECT_EQ(run.events().arg2(i), 0u) << "no step";
      EXPECT_EQ(run.events().arg1(i), run.events().duration_ns(i));
      rests.emplace_back(start, run.events().duration_ns(i));
    }
  }
  return rests;
}

TEST_F(TargetTest, CutsAControlStepOffThatHasLastedForTooLongAndTellsTheRest) {
  abi::ControlBlock& control = segment_.view().control();
  control.armed = abi::kControlStep;
  control.control_since_ns = clock_ - 90;
  control.control_until_ns = clock_ + 10;
  target_->Drive(clock_ + 10);
  EXPECT_EQ(control.armed, uint32_t{abi::kControlStep});
  target_->Drive(clock_ + 11);
  EXPECT_EQ(control.armed, uint32_t{abi::kArmed});
  EXPECT_EQ(control.control_until_ns, clock_ + 11) << "until when it lasted";
  EXPECT_EQ(control.control_cut, 1u);
  EXPECT_EQ(control.control_ended, 1u);
  target_->Drive(clock_ + 20);
  EXPECT_EQ(control.control_until_ns, clock_ + 11);
  ASSERT_TRUE(target_->Read(&batch_));
  const std::vector<std::pair<uint64_t, uint64_t>> rests = {{clock_ - 90, 101}};
  Lose();  // it is told again
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_EQ(RestsIn(*batch_.batch()), rests);
  Deliver();
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_TRUE(RestsIn(*batch_.batch()).empty());
}

// An earlier worker was killed while it cut one off.
TEST_F(TargetTest, EndsAControlStepThatNobodyEnds) {
  abi::ControlBlock& control = segment_.view().control();
  control.armed = abi::kControlStepEnds;
  control.control_since_ns = clock_ - 90;
  target_->Drive(clock_);
  target_->Drive(clock_ + kSecond);
  EXPECT_EQ(control.armed, uint32_t{abi::kControlStepEnds});
  target_->Drive(clock_ + kSecond + 1);
  EXPECT_EQ(control.armed, uint32_t{abi::kArmed});
  EXPECT_EQ(control.control_cut, 1u);
  ASSERT_TRUE(target_->Read(&batch_));
  const std::vector<std::pair<uint64_t, uint64_t>> rests = {
      {clock_ - 90, kSecond + 91}};
  EXPECT_EQ(RestsIn(*batch_.batch()), rests);
}

TEST_F(TargetTest, AControlStepGoesOnWhereTheProcessIsArmedAlready) {
  abi::ControlBlock& control = segment_.view().control();
  control.armed = abi::kControlStep;
  control.control_since_ns = clock_ - 90;
  control.control_until_ns = clock_ + 1000;
  target_->Arm(GpuPlan{}, clock_);
  EXPECT_EQ(control.armed, uint32_t{abi::kControlStep});
  GpuPlan other;
  other.mode = v1::GPU_MODE_HOST;
  target_->Arm(other, clock_ + 5);  // steps count from here
  EXPECT_EQ(control.armed, uint32_t{abi::kArmed});
  control.armed = abi::kControlStep;
  control.control_since_ns = clock_ + 20;
  target_->Disarm(clock_ + 30);
  EXPECT_EQ(control.armed, uint32_t{abi::kAsleep});
  ASSERT_TRUE(target_->Read(&batch_));
  const std::vector<std::pair<uint64_t, uint64_t>> rests = {{clock_ - 90, 95},
                                                            {clock_ + 20, 10}};
  EXPECT_EQ(RestsIn(*batch_.batch()), rests);
  Deliver();
  target_->Arm(other, clock_ + 40);
  control.armed = abi::kControlStep;
  control.control_since_ns = clock_ + 50;
  target_->SetImageEnded(clock_ + 70);
  ASSERT_TRUE(target_->Read(&batch_));
  target_->AddEnd(&batch_, clock_ + 90);
  const auto last = RestsIn(*batch_.batch());
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0], std::pair(clock_ + 50, uint64_t{20}));
}

TEST_F(TargetTest, SaysThatItsProcessWaitedInVain) {
  segment_.view().header().ended = static_cast<uint32_t>(abi::EndedBy::kUnanswered);
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_TRUE(Counters().unanswered());
  EXPECT_FALSE(Counters().unread());
}

TEST_F(TargetTest, GivesUpASegmentThatNamesAChunkWhichIsNone) {
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
  segment_.view().table(0)[0] = abi::kPoolChunks;
  target_->Read(&batch_);
  EXPECT_TRUE(target_->corrupt());
  EXPECT_EQ(CountersOf(0).lost_relay(), 1u);
}

TEST_F(TargetTest, LeavesOutAndCountsWhatNamesAnUndeclaredCall) {
  for (uint64_t i = 0; i < 30; ++i) {
    abi::Event event = MakeEvent(EventType::kLaunch, i);
    if (i % 3 == 1) {  // a call whose name found no room
      event.type = EventType::kApiCall;
      event.api = abi::kRuntimeCallBase + 7;
    } else if (i % 3 == 2) {
      event.api = 999;
    }
    ASSERT_TRUE(segment_.Commit(0, event));
  }
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_FALSE(target_->corrupt());
  EXPECT_EQ(batch_.events(), 10u);
  Deliver();
  lull::v1::RingCounters counters = CountersOf(0);
  EXPECT_EQ(counters.committed(), 30u);
  EXPECT_EQ(counters.lost_relay(), 20u);
  EXPECT_EQ(target_->events_lost(), 20u);
}

TEST_F(TargetTest, SaysNoPositionThatTheWireHasNot) {
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  Deliver();
  segment_.view().ring(0).head = ~uint64_t{0};
  segment_.view().ring(0).tail = ~uint64_t{0} - 5;
  Open({});
  target_->Read(&batch_);
  EXPECT_TRUE(target_->corrupt());
  EXPECT_EQ(batch_.events(), 0u);
  lull::v1::RingCounters counters = CountersOf(0);
  EXPECT_EQ(counters.committed(), 1u) << "what is known";
  EXPECT_EQ(counters.lost_relay(), 0u);
}

TEST_F(TargetTest, TellsTheStateOfTracing) {
  ASSERT_TRUE(target_->Read(&batch_));
  abi::SegmentHeader& header = segment_.view().header();
  header.cupti_state = static_cast<uint32_t>(abi::CuptiState::kTracing);
  header.cupti_version = 26;
  header.cupti_result = 15;
  header.step_hook = static_cast<uint32_t>(abi::StepHookState::kOn);
  header.scope_hook = static_cast<uint32_t>(abi::ScopeHookState::kOn);
  header.scopes_unnamed = 5;
  header.scopes_unopened = 6;
  header.scopes_thinned = 7;
  header.cupti_dropped = 1;
  header.gpu_records_lost = 2;
  header.gpu_records_bad = 3;
  header.gpu_self_ns = 4;
  lull::v1::ProcessCounters counters = Counters();
  EXPECT_EQ(counters.cupti_state(), lull::v1::CUPTI_STATE_TRACING);
  EXPECT_EQ(counters.cupti_version(), 26u);
  EXPECT_EQ(counters.cupti_result(), 15u);
  EXPECT_EQ(counters.step_hook(), lull::v1::STEP_HOOK_STATE_ON);
  EXPECT_EQ(counters.scope_hook(), lull::v1::SCOPE_HOOK_STATE_ON);
  EXPECT_EQ(counters.scopes_unnamed(), 5u);
  EXPECT_EQ(counters.scopes_unopened(), 6u);
  EXPECT_EQ(counters.scopes_thinned(), 7u);
  EXPECT_EQ(counters.cupti_dropped(), 1u);
  EXPECT_EQ(counters.gpu_records_lost(), 2u);
  EXPECT_EQ(counters.gpu_records_bad(), 3u);
  EXPECT_EQ(counters.gpu_self_ns(), 4u);
}

TEST_F(TargetTest, DrivesWindowsByTheClockUntilStepsAppear) {
  abi::ControlBlock& control = segment_.view().control();
  EXPECT_EQ(control.gpu_mode, uint32_t{lull::v1::GPU_MODE_WINDOW});
  EXPECT_EQ(control.gpu_active, 5u);
  auto drive = [&](uint64_t ms) {
    ++segment_.view().header().ringless_gpu_calls;
    target_->Drive(kSecond + ms * 1'000'000);
    return control.gpu_clock_state.load();
  };
  drive(0);
  EXPECT_EQ(control.gpu_by_clock, 0u);
  drive(3100);
  EXPECT_EQ(control.gpu_by_clock, 1u);
  EXPECT_EQ(drive(4100), static_cast<uint32_t>(abi::TracingState::kWarmUp));
  EXPECT_EQ(drive(4300), static_cast<uint32_t>(abi::TracingState::kActive));
  segment_.Commit(0, MakeEvent(EventType::kStep, 0));
  ASSERT_TRUE(target_->Read(&batch_));
  EXPECT_EQ(drive(4400), 0u);
  EXPECT_EQ(control.gpu_by_clock, 0u);
}

TEST_F(TargetTest, HoldsTracingThatCostsMoreThanTheBudget) {
  abi::ControlBlock& control = segment_.view().control();
  for (int i = 0; i < 50; ++i) {
    target_->Govern(kSecond + static_cast<uint64_t>(i) * kSecond / 10);
    segment_.view().header().gpu_self_ns += kSecond / 100;  // 10 %
  }
  EXPECT_EQ(control.gpu_hold, 1u);
  EXPECT_EQ(control.thinning, 0u);
}

// The relay's own ring: this thread launches, and waits for a processor that another
// one does not leave.
class RunDelayTargetTest : public TargetTest {
 protected:
  void SetUp() override {
    if (access("/proc/self/schedstat", R_OK) != 0) {
      GTEST_SKIP() << "this kernel keeps no schedstat";
    }
    TargetTest::SetUp();
    Announce();
  }

  void Announce() {
    segment_.Commit(0, MakeEvent(EventType::kThreadStart, gettid()));
    segment_.Commit(0, MakeEvent(EventType::kLaunch, 1));
    ASSERT_TRUE(target_->Read(&batch_));
  }

  // Until one more event of the relay's own is in the batch.
  void SampleOne() {
    size_t before = batch_.events();
    for (int i = 0; i < 10'000 && batch_.events() == before; ++i) {
      usleep(1'000);
      target_->SampleRunDelay(&batch_, MonotonicNs());
    }
    ASSERT_EQ(batch_.events(), before + 1);
  }
};

TEST_F(RunDelayTargetTest, NumbersItsOwnEventsAcrossWorkersAndCountsTheLost) {
  SampleOne();
  SampleOne();
  const auto& runs = batch_.batch()->rings();
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[1].ring(), kRelayRing);
  EXPECT_EQ(runs[1].events().first_position(), 0u);
  EXPECT_EQ(runs[1].events().type_size(), 2);
  EXPECT_EQ(runs[1].events().tid(0), static_cast<uint32_t>(gettid()));
  Deliver();
  SampleOne();
  Lose();
  lull::v1::RingCounters counters = CountersOf(kRelayRing);
  EXPECT_EQ(counters.committed(), 3u);
  EXPECT_EQ(counters.lost_relay(), 1u);

  SpoolState next_state;  // as the next worker finds it
  ASSERT_TRUE(next_state.Decode(state_.Encode()));
  state_ = std::move(next_state);
  Open({});
  segment_.Commit(0, MakeEvent(EventType::kLaunch, 2));
  ASSERT_TRUE(target_->Read(&batch_));
  SampleOne();
  const auto& run = batch_.batch()->rings(1);
  EXPECT_EQ(run.ring(), kRelayRing);
  EXPECT_EQ(run.events().first_position(), 3u);
  counters = CountersOf(kRelayRing);
  EXPECT_EQ(counters.committed(), 4u);
  EXPECT_EQ(counters.lost_relay(), 1u);
}

TEST_F(RunDelayTargetTest, LeavesThreadsAloneThatGiveTheGpuNothing) {
  segment_.Commit(0, MakeEvent(EventType::kThreadStart, gettid()));
  segment_.Commit(0, MakeEvent(EventType::kGcPause, 1));
  ASSERT_TRUE(target_->Read(&batch_));
  size_t before = batch_.events();
  for (int i = 0; i < 20; ++i) {
    usleep(1'000);
    target_->SampleRunDelay(&batch_, MonotonicNs());
  }
  EXPECT_EQ(batch_.events(), before);
}

}  // namespace
}  // namespace lull::relay
