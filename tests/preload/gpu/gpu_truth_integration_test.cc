// CUPTI in the shim against the simulated device: what is told is what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/preload/gpu/gpu_run.h"
#include "tests/sim/engine/op.h"

namespace lull {
namespace {

using abi::EventType;
using testing::ElementsAre;

constexpr int64_t kClockErrorNs = 50'000;

uint16_t kind(sim::OpKind op) { return static_cast<uint16_t>(op); }

// One event for each operation, in order, at its time.
void expect_same(const std::vector<abi::Event>& events,
                 const std::vector<sim::TruthRecord>& truth) {
  ASSERT_EQ(events.size(), truth.size());
  for (size_t i = 0; i < events.size(); ++i) {
    auto start = static_cast<int64_t>(events[i].start_ns);
    auto end = start + static_cast<int64_t>(events[i].duration_ns);
    EXPECT_NEAR(start, truth[i].start_ns, kClockErrorNs) << i;
    EXPECT_NEAR(end, truth[i].end_ns, kClockErrorNs) << i;
  }
}

void expect_complete(const GpuRun& run) {
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.header().cupti_dropped, 0u);
  EXPECT_EQ(run.header().gpu_records_lost, 0u);
  EXPECT_EQ(run.header().gpu_records_bad, 0u);
  expect_same(run.of(EventType::kGpuKernel), run.ops(kind(sim::OpKind::kKernel)));
  expect_same(run.of(EventType::kGpuCopy), run.ops(kind(sim::OpKind::kCopy)));
  expect_same(run.of(EventType::kGpuMemset), run.ops(kind(sim::OpKind::kMemset)));
}

class GpuTruthOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Runtimes, GpuTruthOf, testing::Values("12", "13"));

TEST_P(GpuTruthOf, AWholeProgramIsTheTruth) {
  GpuRun run = run_on_gpu({std::string(LULL_PUPPETS "/trainer_host") + GetParam()},
                          {.configure = trace_continuously});
  expect_complete(run);
  EXPECT_THAT(run.tracing(), ElementsAre("active:schedule", "off:process end"));
  EXPECT_GT(run.header().gpu_self_ns, 0u);
}

// steady.cu until the watch has removed its file, after `seconds`.
class Sleeper {
 public:
  explicit Sleeper(double seconds) : seconds_(seconds) { close(mkstemp(path_)); }
  ~Sleeper() { unlink(path_); }
  std::vector<std::string> words() const {
    return {LULL_PUPPETS "/steady_host13", path_};
  }
  void end_in_time(double now) const {
    if (now > seconds_) unlink(path_);
  }

 private:
  const double seconds_;
  char path_[32] = "/tmp/lull-test-steady-XXXXXX";
};

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

TEST(GpuTruthOfASleeper, EndsAtTheMomentThatTheProcessIsPutToSleep) {
  Sleeper sleeper(1.6);
  uint64_t asleep_ns = 0;
  auto watch = [&](const FakeRelay::Target& target, double seconds) {
    abi::ControlBlock& control = abi::SegmentView(target.segment).control();
    if (seconds > 0.5 && asleep_ns == 0) {
      asleep_ns = now_ns();
      control.asleep_since_ns = asleep_ns;
      control.armed = 0;
    }
    sleeper.end_in_time(seconds);
  };
  GpuRun run =
      run_on_gpu(sleeper.words(), {.configure = trace_continuously, .watch = watch});
  ASSERT_THAT(run.tracing(), ElementsAre("active:schedule", "off:disarmed"));
  EXPECT_EQ(run.of(EventType::kGpuTracing).back().start_ns, asleep_ns);
  EXPECT_EQ(run.header().cupti_state, static_cast<uint32_t>(abi::CuptiState::kReady));
  // What was submitted before is told, though it was collected in the sleep.
  std::vector<sim::TruthRecord> kernels = run.ops(kind(sim::OpKind::kKernel));
  size_t before = 0;
  for (const sim::TruthRecord& kernel : kernels) {
    before += kernel.end_ns < static_cast<int64_t>(asleep_ns) ? 1 : 0;
  }
  size_t told = run.of(EventType::kGpuKernel).size();
  EXPECT_GE(told, before);
  EXPECT_LE(told, before + 40) << "the calls until the next look at the clock";
  EXPECT_LT(told, kernels.size());
  for (const abi::Event& launch : run.of(EventType::kLaunch)) {
    EXPECT_LT(launch.start_ns, asleep_ns + 1'000'000);
  }
}

TEST(GpuTruthOfASleeper, HasAnotherModeWithEachArming) {
  Sleeper sleeper(1.2);
  auto configure = [](abi::ControlBlock& control) {
    control.gpu_mode = static_cast<uint32_t>(abi::GpuMode::kHost);
    control.armed = 0;
  };
  auto watch = [&](const FakeRelay::Target& target, double seconds) {
    abi::ControlBlock& control = abi::SegmentView(target.segment).control();
    if (seconds > 0.5 && control.arming == 0) {
      trace_continuously(control);
      control.arming = 1;
      control.armed = 1;
    }
    sleeper.end_in_time(seconds);
  };
  GpuRun run = run_on_gpu(sleeper.words(), {.configure = configure, .watch = watch});
  // What it launched in its sleep nobody counted.
  EXPECT_THAT(run.tracing(),
              ElementsAre("warm-up:schedule", "active:schedule", "off:process end"));
  EXPECT_GT(run.of(EventType::kGpuKernel).size(), 100u);
  EXPECT_LT(run.of(EventType::kGpuKernel).size(),
            run.ops(kind(sim::OpKind::kKernel)).size());
}

// A process that is woken and launches 800 ms of work, waits for it, and is put to
// sleep 100 ms into that wait. `before`: kernels of 1 ms that it launched in its sleep.
GpuRun run_that_sleeps_in_a_wait(const char* before, uint64_t* asleep_ns) {
  char path[] = "/tmp/lull-test-burst-XXXXXX";
  close(mkstemp(path));
  double tracing_since = 0;
  auto watch = [&](const FakeRelay::Target& target, double seconds) {
    abi::SegmentView view(target.segment);
    abi::ControlBlock& control = view.control();
    struct stat file;
    if (control.arming == 0 && stat(path, &file) == 0 && file.st_size > 0) {
      control.arming = 1;
      control.armed = 1;
      unlink(path);
    }
    bool tracing =
        view.header().cupti_state == static_cast<uint32_t>(abi::CuptiState::kTracing);
    if (tracing && tracing_since == 0) tracing_since = seconds;
    if (tracing_since != 0 && seconds > tracing_since + 0.1 && *asleep_ns == 0) {
      *asleep_ns = now_ns();
      control.asleep_since_ns = *asleep_ns;
      control.armed = 0;
    }
  };
  auto configure = [](abi::ControlBlock& control) {
    trace_continuously(control);
    control.armed = 0;
  };
  // Read at its end: what is taken while the device is still asked whether it has
  // caught up counts as warm-up (tracer_plan.cc), and on a busy machine that may be all
  // of it.
  return run_on_gpu(
      {LULL_PYTHON, LULL_QUEUES, "burst", "1", before, path},
      {.configure = configure,
       .environment = {{"LULL_SIM_CONFIG", "kernel_us=1000;queue_depth=4096"}},
       .drain = false,
       .watch = watch});
}

TEST(GpuTruthOfASleeper, ThatWasBehindUntilItFellAsleepHasNoActiveTime) {
  uint64_t asleep_ns = 0;
  GpuRun run = run_that_sleeps_in_a_wait("500", &asleep_ns);
  EXPECT_EQ(run.status, 0) << run.output;
  ASSERT_THAT(run.tracing(), ElementsAre("warm-up:schedule", "off:disarmed"));
  EXPECT_EQ(run.of(EventType::kGpuTracing).back().start_ns, asleep_ns);
}

TEST(GpuTruthOfASleeper, ThatHadCaughtUpBeforeHasActiveTimeUntilItFellAsleep) {
  uint64_t asleep_ns = 0;
  GpuRun run = run_that_sleeps_in_a_wait("1", &asleep_ns);
  EXPECT_EQ(run.status, 0) << run.output;
  ASSERT_THAT(run.tracing(),
              ElementsAre("warm-up:schedule", "active:schedule", "off:disarmed"));
  std::vector<abi::Event> told = run.of(EventType::kGpuTracing);
  EXPECT_EQ(told[2].start_ns, asleep_ns);
  // All of it was busy: it began with the first of the 800.
  EXPECT_GT(told[2].start_ns - told[1].start_ns, 50'000'000u);
  std::vector<sim::TruthRecord> kernels = run.ops(kind(sim::OpKind::kKernel));
  EXPECT_NEAR(static_cast<int64_t>(told[1].start_ns), kernels[1].start_ns, 1'000'000);
}

// Two windows by the clock, with 2.3 s in between; CUPTI leaves 2 ms in each launch.
constexpr double kFirstWindow = 0.7, kSecondWindow = 3.3, kWindow = 0.3, kEnd = 4.0;
constexpr double kHangs = 40;

// Of steady.cu, whose steps wait for their stream otherwise.
const std::vector<std::string> kWaitsForAll = {"device"};

struct TwoWindows {
  GpuRun run;
  // Medians of launches: before the first window, and shortly before the second.
  double before_ms = 0, between_ms = 0;
};

TwoWindows run_two_windows(std::vector<std::string> words, bool finalize,
                           Environment environment = {}) {
  Sleeper sleeper(kEnd);
  if (words.empty()) words = sleeper.words();
  if (words == kWaitsForAll) {
    words = sleeper.words();
    words.insert(words.end(), {"2000", "device"});
  }
  auto configure = [finalize](abi::ControlBlock& control) {
    trace_by_clock(control);
    control.gpu_clock_state = static_cast<uint32_t>(abi::TracingState::kOff);
    control.gpu_finalize = finalize ? 1 : 0;
  };
  uint64_t first_ns = 0, second_ns = 0;
  auto watch = [&](const FakeRelay::Target& target, double seconds) {
    const bool first = seconds > kFirstWindow && seconds < kFirstWindow + kWindow;
    const bool second = seconds > kSecondWindow && seconds < kSecondWindow + kWindow;
    if (first && first_ns == 0) first_ns = now_ns();
    if (second && second_ns == 0) second_ns = now_ns();
    abi::SegmentView(target.segment).control().gpu_clock_state = static_cast<uint32_t>(
        first || second ? abi::TracingState::kActive : abi::TracingState::kOff);
    sleeper.end_in_time(seconds);
    if (seconds > kHangs) kill(target.pid, SIGKILL);
  };
  environment["LULL_SIM_CONFIG"] = "kernel_us=20;cupti_stays_ns=2000000";
  TwoWindows two;
  two.run =
      run_on_gpu(std::move(words),
                 {.configure = configure, .environment = environment, .watch = watch});
  auto median_ms = [&](uint64_t since, uint64_t until) {
    std::vector<double> all;
    for (const abi::Event& launch : two.run.of(EventType::kLaunch)) {
      if (launch.start_ns >= since && launch.start_ns < until) {
        all.push_back(static_cast<double>(launch.duration_ns) / 1e6);
      }
    }
    std::ranges::sort(all);
    return all.empty() ? -1.0 : all[all.size() / 2];
  };
  two.before_ms = median_ms(0, first_ns);
  two.between_ms = median_ms(second_ns - 400'000'000, second_ns);
  return two;
}

void expect_both_windows(const GpuRun& run) {
  std::vector<std::string> told = run.tracing();
  std::erase(told, "warm-up:schedule");
  EXPECT_THAT(told, ElementsAre("active:schedule", "off:schedule", "active:schedule",
                                "off:schedule"));
  EXPECT_EQ(run.lost(), 0u);
  EXPECT_EQ(run.header().gpu_records_lost, 0u);
  const std::vector<abi::Event> kernels = run.of(EventType::kGpuKernel);
  const std::vector<sim::TruthRecord> truth = run.ops(kind(sim::OpKind::kKernel));
  size_t at = 0;
  for (const abi::Event& kernel : kernels) {
    auto is_it = [&](const sim::TruthRecord& record) {
      return std::abs(record.start_ns - static_cast<int64_t>(kernel.start_ns)) <
             kClockErrorNs;
    };
    while (at < truth.size() && !is_it(truth[at])) ++at;
  }
  EXPECT_LT(at, truth.size()) << "a kernel that there was not";
  const uint64_t second_ns =
      run.of(EventType::kGpuTracing).back().start_ns - 250'000'000;
  EXPECT_GT(std::ranges::count_if(
                kernels, [&](const auto& one) { return one.start_ns > second_ns; }),
            10);
}

TEST(GpuFinalize, NothingOfAWindowStaysInTheProgramsCalls) {
  TwoWindows two = run_two_windows(kWaitsForAll, true);
  EXPECT_EQ(two.run.output, "trained\n");
  EXPECT_LT(two.before_ms, 1);
  EXPECT_GE(two.between_ms, 0);
  EXPECT_LT(two.between_ms, 1);
  expect_both_windows(two.run);
}

TEST(GpuFinalize, IsNotDoneUnlessAskedFor) {
  TwoWindows two = run_two_windows(kWaitsForAll, false);
  EXPECT_LT(two.before_ms, 1);
  EXPECT_GE(two.between_ms, 2);
  expect_both_windows(two.run);
}

TEST(GpuFinalize, IsNotDoneWhereOneStreamAloneWasWaitedFor) {
  EXPECT_GE(run_two_windows({}, true).between_ms, 2);
}

class GpuFinalizeBeside : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Users, GpuFinalizeBeside,
                         testing::Values("subscribes", "has_subscribed", "has_traced"));

TEST_P(GpuFinalizeBeside, SomebodyElseIsNotDone) {
  TwoWindows two =
      run_two_windows(kWaitsForAll, true,
                      {{"LD_PRELOAD", std::string(LULL_SHIM) + ":" LULL_CUPTI_USER},
                       {"LULL_TEST_CUPTI_USER", GetParam()}});
  EXPECT_EQ(two.run.output, std::string(GetParam()) + "\ntrained\n");
  EXPECT_GE(two.between_ms, 2);
  expect_both_windows(two.run);
}

// What the device waits for may need the thread that waits for a stream.
TEST(GpuFinalize, HangsNoProgramThatHoldsALock) {
  const std::vector<std::string> words = {LULL_PYTHON, LULL_QUEUES, "held", "110"};
  TwoWindows two = run_two_windows(words, true, {{"QUEUES_CUDART", "libcudart.so.13"}});
  EXPECT_EQ(two.run.status, 0);
  EXPECT_EQ(two.run.output, "");
}

const std::vector<std::string> kLong = {LULL_PYTHON, LULL_QUEUES, "long", "180", "180"};

TEST(GpuFinalize, IsDoneWithoutTheGilAlone) {
  Environment environment = {{"QUEUES_CUDART", "libcudart.so.13"},
                             {"QUEUES_WAIT", "device"}};
  TwoWindows without = run_two_windows(kLong, true, environment);
  EXPECT_EQ(without.run.output, "");
  EXPECT_GE(without.between_ms, 0);
  EXPECT_LT(without.between_ms, 1);
  environment["QUEUES_KEEP_GIL"] = "1";
  EXPECT_GE(run_two_windows(kLong, true, environment).between_ms, 2);
}

TEST(GpuFinalize, OlderCuptisAreLeftAsTheyAre) {
  EXPECT_GE(run_two_windows(kLong, true, {{"QUEUES_WAIT", "device"}}).between_ms, 2);
}

}  // namespace
}  // namespace lull
