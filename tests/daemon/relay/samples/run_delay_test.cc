#include "daemon/relay/samples/run_delay.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/event_views.h"

namespace lull::relay {
namespace {

TEST(RunDelay, ReadsWhatTheKernelWrites) {
  Scheduling scheduling;
  EXPECT_TRUE(ParseSchedstat("123456 7890 42\n", &scheduling));
  EXPECT_EQ(scheduling.ran_ns, 123456u);
  EXPECT_EQ(scheduling.delay_ns, 7890u);
  EXPECT_EQ(scheduling.slices, 42u);
  std::string stat = "77 (pt) main) (x) R 1 77 77 0 -1 4194304";
  for (int field = 10; field < 39; ++field) absl::StrAppend(&stat, " ", 1000 + field);
  EXPECT_TRUE(ParseProcessor(stat + " 13 0 0\n", &scheduling));
  EXPECT_EQ(scheduling.processor, 13);
  EXPECT_TRUE(
      ParseSwitches("Name:\tx\nvoluntary_ctxt_switches:\t9\n"
                    "nonvoluntary_ctxt_switches:\t17\n",
                    &scheduling));
  EXPECT_EQ(scheduling.involuntary, 17u);
}

TEST(RunDelay, RefusesWhatItDoesNotWrite) {
  Scheduling scheduling;
  for (const char* text : {"", "1 2", "1 2 3 4", "x 2 3", "1 x 3", "1 -2 3", "0 0 0\n"}) {
    EXPECT_FALSE(ParseSchedstat(text, &scheduling)) << text;
  }
  for (const char* text : {"", "1 (x", "1 (x) R 1 2 3"}) {
    EXPECT_FALSE(ParseProcessor(text, &scheduling)) << text;
  }
  EXPECT_FALSE(ParseSwitches("voluntary_ctxt_switches:\t9\n", &scheduling));
}

TEST(RunDelay, TellsWhatHappenedBetweenTwoSamples) {
  RunDelaySampler sampler(1);
  EXPECT_FALSE(sampler.Advance(7, {1000, 10, 3, 0}, 100).has_value()) << "the first";
  auto event = sampler.Advance(7, {1400, 14, 5, 2}, 150);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(static_cast<int>(event->type), 32);
  EXPECT_EQ(event->start_ns, 100u);
  EXPECT_EQ(event->duration_ns, 50u);
  EXPECT_EQ(RunDelayView{*event}.delay_ns(), 400u);
  EXPECT_EQ(RunDelayView{*event}.migrations(), 1u);
  EXPECT_EQ(RunDelayView{*event}.preemptions(), 2u);
  EXPECT_FALSE(sampler.Advance(7, {1400, 14, 5, 2}, 200).has_value()) << "nothing";
  EXPECT_TRUE(sampler.Advance(7, {1400, 15, 5, 1}, 250).has_value()) << "moved";
  EXPECT_TRUE(sampler.Advance(7, {1400, 16, 6, 1}, 300).has_value()) << "pre-empted";
}

TEST(RunDelay, AnotherThreadUnderTheSameNumberBeginsAnew) {
  RunDelaySampler sampler(1);
  sampler.Advance(7, {1000, 10, 3, 0}, 100);
  EXPECT_FALSE(sampler.Advance(7, {500, 20, 4, 0}, 150).has_value());
  auto event = sampler.Advance(7, {600, 21, 4, 0}, 200);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(RunDelayView{*event}.delay_ns(), 100u);
  sampler.Forget(7);
  EXPECT_FALSE(sampler.Advance(7, {700, 22, 4, 0}, 250).has_value());
}

TEST(RunDelay, ALookSaysMoreCloselyWhenItWas) {
  RunDelaySampler sampler(1);
  const SchedulingLook first{900, 1000, {0, 10, 0, 0}};
  EXPECT_FALSE(sampler.Looked(7, first).has_value()) << "not one that it knows";
  sampler.Advance(7, {0, 10, 0, 0}, 1000);
  // It ended after 5000, so that it began after 4700.
  auto event = sampler.Looked(7, {5000, 5100, {300, 11, 1, 0}});
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->start_ns, 4700u);
  EXPECT_EQ(event->duration_ns, 400u);
  EXPECT_EQ(RunDelayView{*event}.delay_ns(), 300u);
  EXPECT_EQ(RunDelayView{*event}.preemptions(), 1u);
  // Not before what was told already, nor is that told again.
  event = sampler.Looked(7, {5200, 5300, {700, 12, 2, 1}});
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->start_ns, 5100u);
  EXPECT_EQ(event->duration_ns, 200u);
  EXPECT_EQ(RunDelayView{*event}.delay_ns(), 400u);
  EXPECT_FALSE(sampler.Looked(7, {5200, 5300, {700, 12, 2, 1}}).has_value());
  event = sampler.Advance(7, {900, 13, 3, 1}, 5400);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->start_ns, 5300u);
  EXPECT_EQ(RunDelayView{*event}.delay_ns(), 200u);
  EXPECT_FALSE(sampler.Looked(7, {5310, 5350, {800, 13, 3, 1}}).has_value())
      << "before that";
  // Its time is later, and its counters were read earlier: nothing is told again.
  EXPECT_FALSE(sampler.Looked(7, {5310, 5450, {800, 12, 2, 1}}).has_value());
  EXPECT_FALSE(sampler.Advance(7, {900, 13, 3, 1}, 5500).has_value());
}

TEST(RunDelay, FindsTheDelayOfThreadsThatShareAProcessor) {
  if (access("/proc/self/schedstat", R_OK) != 0) {
    GTEST_SKIP() << "this kernel keeps no schedstat";
  }
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> tids[2] = {};
  std::vector<std::thread> spinners;
  for (auto& tid : tids) {
    spinners.emplace_back([&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof(one), &one);
      tid = static_cast<uint32_t>(gettid());
      while (!stop) {
      }
    });
  }
  while (tids[0] == 0 || tids[1] == 0) usleep(1000);
  RunDelaySampler sampler(getpid());
  uint64_t begin = MonotonicNs();
  sampler.Sample(tids[0], begin);
  uint64_t delay = 0;
  uint64_t spans = 0;
  while (spans < 250'000'000) {  // ctest bounds it
    usleep(50'000);
    uint64_t now = MonotonicNs();
    auto event = sampler.Sample(tids[0], now);
    if (!event) continue;
    delay += RunDelayView{*event}.delay_ns();
    spans += event->duration_ns;
  }
  uint64_t elapsed = MonotonicNs() - begin;
  stop = true;
  for (std::thread& spinner : spinners) spinner.join();
  EXPECT_GT(delay, elapsed / 10) << "two threads, one processor";
  EXPECT_LE(spans, elapsed);
  EXPECT_FALSE(sampler.Sample(tids[0], MonotonicNs()).has_value()) << "it is gone";
}

TEST(RunDelaySampler, AsksLessOftenWhereNothingIsTraced) {
  constexpr uint64_t kMs = 1'000'000;
  RunDelaySampler sampler(getpid());
  ASSERT_TRUE(sampler.IsDue(10'000 * kMs, false));
  EXPECT_FALSE(sampler.IsDue(10'499 * kMs, false));
  EXPECT_TRUE(sampler.IsDue(10'500 * kMs, false));
  EXPECT_TRUE(sampler.IsDue(10'501 * kMs, true)) << "tracing begins";
  EXPECT_FALSE(sampler.IsDue(10'550 * kMs, true));
  EXPECT_TRUE(sampler.IsDue(10'551 * kMs, true));
  EXPECT_TRUE(sampler.IsDue(10'552 * kMs, false)) << "tracing ends";
  EXPECT_FALSE(sampler.IsDue(10'553 * kMs, false));
}

}  // namespace
}  // namespace lull::relay
