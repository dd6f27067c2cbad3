// From CUPTI's clock to CLOCK_MONOTONIC, whatever CUPTI's clock does.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "preload/cupti/clock.h"
#include "preload/support/clock.h"
#include "tests/preload/cupti/fake_cupti.h"

namespace lull::cupti {
namespace {

constexpr uint64_t kMilli = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBoot = 1'000 * kSecond;  // the first sample, monotonic
constexpr uint64_t kClockEpoch =
    1'700'000'000 * kSecond;  // CLOCK_REALTIME at monotonic 0

// CUPTI's clock and CLOCK_REALTIME as functions of the monotonic one.
using Clock = std::function<uint64_t(uint64_t)>;

uint64_t wall(uint64_t monotonic) { return kClockEpoch + monotonic; }
uint64_t tsc(uint64_t monotonic) { return 12'345 + monotonic * 5 / 2; }

// Sampled every 100 ms for `seconds`.
ClockView sampled(const Clock& trace, const Clock& realtime, double seconds = 2) {
  ClockView view;
  for (uint64_t at = kBoot; at <= kBoot + static_cast<uint64_t>(seconds * 1e9);
       at += 100 * kMilli) {
    view.add({at, trace(at), realtime(at)});
  }
  view.finish();
  return view;
}

// INT64_MIN: not known.
int64_t error_at(const ClockView& view, const Clock& trace, uint64_t moment,
                 uint64_t not_before = 0, uint64_t not_after = UINT64_MAX) {
  uint64_t found = 0;
  if (!view.convert(trace(moment), not_before, not_after, &found)) return INT64_MIN;
  return static_cast<int64_t>(found - moment);
}

TEST(TraceClock, IsExactWhileNobodySetsTheTime) {
  ClockView view = sampled(wall, wall);
  for (uint64_t after : {uint64_t{0}, 1 * kMilli, 550 * kMilli, 2 * kSecond}) {
    EXPECT_LE(std::abs(error_at(view, wall, kBoot + after)), 1) << after;
  }
}

TEST(TraceClock, GoesOnAtTheSameRateJustOutsideOfItsSamples) {
  ClockView view = sampled(wall, wall);
  EXPECT_LE(std::abs(error_at(view, wall, kBoot - kSecond)), 1);
  EXPECT_LE(std::abs(error_at(view, wall, kBoot + 3 * kSecond)), 1);
  EXPECT_EQ(error_at(view, wall, kBoot + 10 * kSecond), INT64_MIN) << "absurd";
  EXPECT_EQ(error_at(view, wall, kBoot - 10 * kSecond), INT64_MIN);
}

TEST(TraceClock, FollowsASlewOf500Ppm) {
  auto slewed = [](uint64_t at) { return wall(at) + (at - kBoot) / 2000; };
  ClockView view = sampled(slewed, slewed);
  EXPECT_LE(std::abs(error_at(view, slewed, kBoot + 777 * kMilli)), 2);
}

// CLOCK_REALTIME is set by `step` at one moment between two samples.
Clock stepped(int64_t step, uint64_t when) {
  return [=](uint64_t at) {
    return wall(at) + (at < when ? 0 : static_cast<uint64_t>(step));
  };
}

TEST(TraceClock, ALargeStepTearsNoInterval) {
  uint64_t when = kBoot + 1'037 * kMilli;
  for (int64_t step : {int64_t(3600 * kSecond), -int64_t(3600 * kSecond)}) {
    Clock clock = stepped(step, when);
    ClockView view = sampled(clock, clock);
    for (uint64_t at = kBoot; at < kBoot + 2 * kSecond; at += 3 * kMilli) {
      EXPECT_LE(std::abs(error_at(view, clock, at)), 1) << at - kBoot;
    }
  }
}

TEST(TraceClock, ASmallStepLeavesOnlyWhatIsAmbiguousUnknown) {
  uint64_t when = kBoot + 1'040 * kMilli;
  Clock clock = stepped(30 * kMilli, when);
  ClockView view = sampled(clock, clock);
  int unknown = 0;
  for (uint64_t at = kBoot; at < kBoot + 2 * kSecond; at += kMilli) {
    int64_t error = error_at(view, clock, at);
    if (error == INT64_MIN) {
      ++unknown;
    } else {
      EXPECT_LE(std::abs(error), 1) << at - kBoot;
    }
  }
  EXPECT_GT(unknown, 0);
  EXPECT_LE(unknown, 100) << "no more than the stretch between two samples";
}

TEST(TraceClock, TheLifeOfTheBufferTellsTwoMomentsApart) {
  uint64_t when = kBoot + 1'050 * kMilli;
  Clock clock = stepped(-int64_t(500 * kMilli), when);
  ClockView view = sampled(clock, clock);
  uint64_t moment = kBoot + 1'200 * kMilli;  // shows what 0.7 s showed before
  EXPECT_EQ(error_at(view, clock, moment), INT64_MIN);
  EXPECT_LE(std::abs(error_at(view, clock, moment, kBoot + 1'100 * kMilli)), 1);
  EXPECT_LE(
      std::abs(error_at(view, clock, moment - 500 * kMilli, 0, kBoot + 1'000 * kMilli)),
      1);
}

TEST(TraceClock, AnotherUsersCounterIsReadAtItsRate) {
  ClockView view = sampled(tsc, wall);
  for (uint64_t after : {uint64_t{0}, 1 * kMilli, 550 * kMilli, 2'100 * kMilli}) {
    EXPECT_LE(std::abs(error_at(view, tsc, kBoot + after)), 2) << after;
  }
}

TEST(TraceClock, ACounterThatTakesOverInTheMiddleIsToldFromTheWallClock) {
  uint64_t when = kBoot + 1'050 * kMilli;
  Clock clock = [&](uint64_t at) { return at < when ? wall(at) : tsc(at); };
  ClockView view = sampled(clock, wall);
  for (uint64_t at = kBoot; at < kBoot + 2 * kSecond; at += 7 * kMilli) {
    EXPECT_LE(std::abs(error_at(view, clock, at)), 2) << at - kBoot;
  }
}

TEST(TraceClock, AClockWithoutARateIsNotBelieved) {
  // Goes on by leaps: each stretch at another rate.
  Clock clock = [](uint64_t at) {
    uint64_t n = (at - kBoot) / (100 * kMilli);
    return n * n * kMilli;
  };
  ClockView view = sampled(clock, wall);
  uint64_t found = 0;
  EXPECT_FALSE(view.convert(clock(kBoot + 1'000 * kMilli) + 1, 0, UINT64_MAX, &found));
}

TEST(TraceClock, WithoutASampleNothingIsKnown) {
  ClockView view;
  view.finish();
  uint64_t found = 0;
  EXPECT_FALSE(view.convert(wall(kBoot), 0, UINT64_MAX, &found));
}

TEST(TraceClock, OneSampleServesForTheWallClock) {
  ClockView view;
  view.add({kBoot, wall(kBoot), wall(kBoot)});
  view.finish();
  EXPECT_EQ(error_at(view, wall, kBoot), 0);
  EXPECT_EQ(error_at(view, wall, kBoot + kSecond), 0);
}

TEST(TraceClock, SamplesOfSeveralThreadsAreSorted) {
  ClockView view;
  for (uint64_t after : {300, 100, 200, 200, 0}) {
    uint64_t at = kBoot + after * kMilli;
    view.add({at, wall(at), wall(at)});
  }
  view.finish();
  EXPECT_EQ(view.size(), 4u) << "two of one moment are one";
  EXPECT_EQ(error_at(view, wall, kBoot + 150 * kMilli), 0);
}

TEST(ClockSamples, KeepTheLatest) {
  ClockSamples samples;
  for (uint64_t i = 0; i < 3 * kClockSamples; ++i) {
    uint64_t at = kBoot + i * kMilli;
    samples.add({at, wall(at), wall(at)});
  }
  ClockView view;
  samples.copy(&view);
  EXPECT_EQ(view.size(), kClockSamples);
  EXPECT_EQ(error_at(view, wall, kBoot + (3 * kClockSamples - 1) * kMilli), 0);
  uint64_t found = 0;
  EXPECT_FALSE(view.convert(wall(kBoot - 3 * kSecond), 0, UINT64_MAX, &found));
}

TEST(ClockSamples, TellAWallClockFromAnotherOne) {
  FakeCuptiScope scope;
  ClockSamples samples;
  Api api = FakeCupti::api();
  ASSERT_TRUE(samples.take(api, true));
  EXPECT_FALSE(samples.is_foreign());
  FakeCupti::instance().rate = 3;
  ASSERT_TRUE(samples.take(api, true));
  EXPECT_TRUE(samples.is_foreign());
  FakeCupti::instance().failures["cuptiGetTimestamp"] = 999;
  EXPECT_FALSE(samples.take(api, true));
}

TEST(ClockSamples, GoOnWithAnotherClockOnceItsRateIsKnown) {
  auto ticks = [](uint64_t at) { return 3 * (at - kBoot); };
  ClockSamples samples;
  samples.add({kBoot, wall(kBoot), wall(kBoot)});
  EXPECT_TRUE(samples.go_on());
  uint64_t first = kBoot + 100 * kMilli;
  samples.add({first, ticks(first), wall(first)});
  EXPECT_FALSE(samples.go_on()) << "one sample of it";
  uint64_t second = kBoot + 200 * kMilli;
  samples.add({second, ticks(second), wall(second)});
  EXPECT_TRUE(samples.go_on());
  ClockView view;
  samples.copy(&view);
  EXPECT_LE(std::abs(error_at(view, ticks, second + 50 * kMilli)), 2);
}

TEST(ClockSamples, AreWholeWhileOthersAreAdded) {
  ClockSamples samples;
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&] {
      while (!stop) {
        uint64_t at = monotonic_ns();
        samples.add({at, wall(at), wall(at)});
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    ClockView view;
    samples.copy(&view);
    uint64_t now = monotonic_ns();
    // A torn sample would lead far off.
    if (view.size() > 1) {
      EXPECT_LE(std::abs(error_at(view, wall, now)), 2);
    }
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

}  // namespace
}  // namespace lull::cupti
