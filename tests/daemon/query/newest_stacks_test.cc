// `lull stacks`: where threads were at the newest look, through ingest, store and
// query.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/clock_identity.h"
#include "daemon/base/event_views.h"
#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kRunning = 0, kBlocked = 2;
constexpr uint32_t kExact = 0, kHeld = 1, kCut = 2, kNoState = 3, kFailed = 4;
constexpr uint32_t kMain = 0, kLoader = 3;
constexpr uint32_t kRelayRing = 65535;
constexpr uint32_t kWait = 1, kRead = 2;  // stacks

class NewestStacks : public ::testing::Test {
 protected:
  NewestStacks() : NewestStacks(MakeHello(MakeJobId(1))) {}
  explicit NewestStacks(const lull::v1::Hello& hello) : pipeline_(hello) {
    batch_.set_sequence(1);
    for (uint64_t key : {1, 2, 3}) {
      lull::v1::ProcessInfo info = MakeProcess(key, 100 + static_cast<uint32_t>(key),
                                               static_cast<int32_t>(key) - 1);
      info.set_python_version("3.11");
      *batch_.add_processes() = info;
      AddStacks(batch_, key);
    }
  }

  void Look(uint64_t process, uint64_t at_ms, uint32_t stack, uint32_t state = kBlocked,
            uint32_t quality = kExact, uint32_t role = kMain, uint32_t tid = 1000) {
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_HOST_SAMPLE;
    event.start_ns = kJobStartNs + at_ms * kMs;
    event.tid = tid;
    SampleView{event}.set_weight_ns(100 * kMs).set_look(state, quality).set_role(role);
    event.python = stack;
    looks_[process].push_back(event);
  }

  absl::StatusOr<lull::v1::NewestStacks> Ask(
      const std::function<void(lull::v1::ReportRequest&)>& set = nullptr) {
    for (const auto& [process, looks] : looks_) {
      AddRun(batch_, process, kRelayRing, 0, looks);
      lull::v1::ProcessCounters* counters = batch_.add_counters();
      counters->set_process_key(process);
      counters->set_gpu_calls(1);
      counters->set_as_of_ns(kJobStartNs + 100 * kSecond);
      counters->mutable_host_samples()->set_taken(looks.size());
    }
    looks_.clear();
    if (batch_.sequence() == 1) {
      pipeline_.Apply(batch_);
      pipeline_.Commit();
      batch_.set_sequence(2);
    }
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_STACKS);
    if (set) set(request);
    lull::v1::ReportReply reply;
    absl::Status status = query::Report(
        pipeline_.store(), [](const std::string&) { return true; }, request, &reply);
    if (!status.ok()) return status;
    return reply.stacks();
  }

  lull::v1::Batch batch_;
  std::map<uint64_t, std::vector<TestEvent>> looks_;
  Pipeline pipeline_;
};

TEST_F(NewestStacks, PutsRanksWithTheSameStackTogether) {
  for (uint64_t process : {1, 3}) {
    Look(process, 5'000, kRead, kRunning);
    for (uint64_t at = 10'000; at <= 20'000; at += 100) Look(process, at, kWait);
  }
  Look(2, 19'900, kRead, kRunning);
  const auto told = Ask();
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->stacks_size(), 2) << told->DebugString();
  EXPECT_EQ(told->processes(), 3u);
  const lull::v1::ThreadStack& waiting = told->stacks(0);
  ASSERT_EQ(waiting.threads_size(), 2);
  EXPECT_EQ(waiting.threads(0).rank(), 0);
  EXPECT_EQ(waiting.threads(1).rank(), 2);
  EXPECT_EQ(waiting.threads(0).state(), lull::v1::HOST_SAMPLE_STATE_BLOCKED);
  EXPECT_EQ(waiting.threads(0).same_for_ns(), 10 * kSecond);
  EXPECT_EQ(waiting.threads(0).looks(), 101u);
  EXPECT_LE(waiting.threads(0).age_ns(), 1u);
  EXPECT_GT(waiting.stack_size(), 0);
  EXPECT_TRUE(waiting.has_site());
  const lull::v1::ThreadStack& reading = told->stacks(1);
  ASSERT_EQ(reading.threads_size(), 1);
  EXPECT_EQ(reading.threads(0).rank(), 1);
  EXPECT_EQ(reading.threads(0).same_for_ns(), 0u);
  EXPECT_EQ(reading.threads(0).age_ns() / kMs, 100u);
}

TEST_F(NewestStacks, BeginsAnewWhereAThreadHasBeenElsewhere) {
  Look(1, 1'000, kWait);
  Look(1, 2'000, kRead);
  Look(1, 3'000, kWait);
  Look(1, 3'500, kWait, kBlocked, kHeld);
  const auto told = Ask();
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->stacks_size(), 1);
  EXPECT_EQ(told->stacks(0).threads(0).same_for_ns(), 500 * kMs);
  EXPECT_EQ(told->stacks(0).threads(0).looks(), 2u);
}

TEST_F(NewestStacks, ALookThatFailedSaysNothingOfAThreadThatWasSeen) {
  Look(1, 1'000, kWait);
  Look(1, 1'100, 0, kRunning, kFailed);
  Look(2, 1'100, 0, kRunning, kFailed);
  const auto told = Ask();
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->stacks_size(), 2) << told->DebugString();
  for (const lull::v1::ThreadStack& stack : told->stacks()) {
    EXPECT_EQ(stack.stack().empty(), stack.threads(0).rank() == 1);
    EXPECT_EQ(stack.has_site(), stack.threads(0).rank() == 0);
  }
}

TEST_F(NewestStacks, KeepsKindsOfThreadsAndCutStacksApart) {
  Look(1, 1'000, kWait, kBlocked, kExact, kMain, 1);
  Look(1, 1'000, kWait, kBlocked, kExact, kLoader, 2);
  Look(1, 1'000, kWait, kRunning, kCut, kMain, 3);
  Look(1, 1'000, 0, kBlocked, kNoState, kMain, 4);
  const auto told = Ask();
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->stacks_size(), 4) << told->DebugString();
  const auto loaders = Ask([](lull::v1::ReportRequest& request) {
    request.set_role(lull::v1::HOST_SAMPLE_ROLE_LOADER);
  });
  ASSERT_TRUE(loaders.ok()) << loaders.status();
  ASSERT_EQ(loaders->stacks_size(), 1);
  EXPECT_EQ(loaders->stacks(0).threads(0).tid(), 2u);
}

TEST_F(NewestStacks, ShowsAnEarlierTimeIfAsked) {
  Look(1, 1'000, kRead);
  Look(1, 60'000, kWait);
  const auto told =
      Ask([](lull::v1::ReportRequest& request) { request.set_until_ns(10 * kSecond); });
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->stacks_size(), 1);
  EXPECT_EQ(told->at_ns(), 10 * kSecond);
  EXPECT_EQ(told->stacks(0).threads(0).age_ns(), 9 * kSecond);
}

TEST_F(NewestStacks, SaysThatNobodyLooked) {
  Look(1, 1'000, kWait);
  const auto told =
      Ask([](lull::v1::ReportRequest& request) { request.set_since_ns(90 * kSecond); });
  EXPECT_EQ(told.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(told.status().message(), HasSubstr("no thread was looked at"));
}

TEST_F(NewestStacks, LeavesOutProcessesThatHaveEndedWhileOthersLive) {
  Look(1, 1'000, kWait);
  Look(2, 1'000, kWait);
  auto* exit = batch_.add_process_ends();
  exit->set_process_key(1);
  exit->set_end_ns(kJobStartNs + 2 * kSecond);
  const auto told = Ask();
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->stacks_size(), 1);
  ASSERT_EQ(told->stacks(0).threads_size(), 1);
  EXPECT_EQ(told->stacks(0).threads(0).rank(), 1);
}

// A job whose host has another date than we have: 2023.
lull::v1::Hello HelloOf(const ClockIdentity& clock) {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_boot_id(clock.boot_id);
  hello.mutable_job()->set_time_namespace(clock.time_namespace);
  return hello;
}

class AgeOfStacks : public NewestStacks {
 protected:
  explicit AgeOfStacks(const lull::v1::Hello& hello) : NewestStacks(hello) {
    Look(1, 20'000, kWait);
  }

  void ExpectBehind(uint64_t ns) {
    const auto told = Ask();
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_NEAR(static_cast<double>(told->behind_ns()), static_cast<double>(ns), 30e9);
  }
};

class AgeOfStacksHere : public AgeOfStacks {
 protected:
  AgeOfStacksHere() : AgeOfStacks(HelloOf(OwnClock())) {}
};

TEST_F(AgeOfStacksHere, GoesByTheClockThatBothHave) {
  const uint64_t then_ns = kJobStartNs + 20 * kSecond, now_ns = MonotonicNs();
  ExpectBehind(now_ns > then_ns ? now_ns - then_ns : 0);
}

class AgeOfStacksElsewhere : public AgeOfStacks {
 protected:
  AgeOfStacksElsewhere() : AgeOfStacks(HelloOf({"another", 1})) {}
};

TEST_F(AgeOfStacksElsewhere, GoesByWhatWasReadOfBothClocks) {
  const auto offset = static_cast<int64_t>(MonotonicNs()) -
                      static_cast<int64_t>(kJobStartNs + 320 * kSecond);
  lull::v1::ClockReading reading;
  reading.set_at_ns(kJobStartNs + 20 * kSecond);
  reading.set_low_ns(offset - 1'000'000);
  reading.set_high_ns(offset + 1'000'000);
  reading.set_boot_id(OwnClock().boot_id);
  reading.set_time_namespace(OwnClock().time_namespace);
  pipeline_.Apply(reading);
  ExpectBehind(300 * kSecond);
}

TEST_F(AgeOfStacksElsewhere, GoesByDatesWhereNothingWasRead) {
  ExpectBehind(RealtimeNs() - 1'700'000'020 * kSecond);
}

}  // namespace
}  // namespace lull::test
