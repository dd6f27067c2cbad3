// From a Python program under the real shim to what a collector gets.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "daemon/relay/samples/run_delay.h"
#include "tests/daemon/relay/relay_fixture.h"
#include "tests/preload/interpreters.h"

namespace lull::relay {
namespace {

constexpr uint32_t kSample = 33;

class HostSamples : public RelayTest {
 protected:
  // Runs the guest below the shim, to its end.
  void RunGuest(const std::string& python, const std::string& seconds,
                const std::string& how = "") {
    pid_t child = fork();
    if (child == 0) {
      setenv("LD_PRELOAD", LULL_SHIM, 1);
      setenv("LULL_SOCKET", (root_ + "/run/relay").c_str(), 1);
      int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      execl(python.c_str(), python.c_str(), LULL_PUPPETS "/guest.py", seconds.c_str(),
            how.empty() ? nullptr : how.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (waitpid(child, &status, WNOHANG) == 0 && absl::Now() < deadline) {
      pollfd entry{keeper_->fd(), POLLIN, 0};
      poll(&entry, 1, 5);
      keeper_->Poll();
    }
    EXPECT_EQ(status, 0);
  }

  // Of the process: how many samples there are, and in which functions.
  struct Told {
    size_t samples = 0;
    std::set<std::string> functions;
  };
  static Told ToldOf(const Collected& collected, uint64_t key) {
    Told told;
    auto ring = collected.rings.find({key, kRelayRing});
    if (ring == collected.rings.end()) return told;
    for (size_t i = 0; i < ring->second.types.size(); ++i) {
      if (ring->second.types[i] != kSample) continue;
      ++told.samples;
      EXPECT_GT(ring->second.values[i], 0u) << "it stands for some time";
      auto stack = collected.stacks.find({key, ring->second.python_stacks[i]});
      if (stack == collected.stacks.end()) continue;
      for (const auto& frame : stack->second.frames()) {
        told.functions.insert(frame.function());
      }
    }
    return told;
  }

  // What holds of all processes.
  static void CheckCounters(const Collected& collected) {
    EXPECT_EQ(collected.violations, std::vector<std::string>());
    for (const auto& [key, counters] : collected.counters) {
      const auto& c = counters.host_samples();
      EXPECT_EQ(c.taken(), ToldOf(collected, key).samples);
      EXPECT_EQ(c.taken(), c.exact() + c.held() + c.cut() + c.no_state() + c.failed());
      EXPECT_LE(c.failed(), 4u) << "as it ended";
    }
  }

  void Start(bool samples = true, bool dormant = false) {
    collector_->Start();
    RelayOptions options = Options();
    options.job.mutable_settings()->set_no_host_samples(!samples);
    options.dormant = dormant;
    StartKeeper(options);
  }
};

TEST_F(HostSamples, TellWhereEachInterpreterIs) {
  Start();
  size_t runs = 0;
  for (const auto& python : lull::testing::interpreters()) {
    RunGuest(python.path, "2");
    ++runs;
  }
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  CheckCounters(collected);
  ASSERT_EQ(collected.processes.size(), runs);
  for (const auto& [key, process] : collected.processes) {
    SCOPED_TRACE(process.python_version());
    Told told = ToldOf(collected, key);
    EXPECT_GE(told.samples, 5u) << "of 20";
    EXPECT_TRUE(told.functions.count("busy") != 0);
    EXPECT_TRUE(told.functions.count("work") != 0);
    EXPECT_TRUE(told.functions.count("<module>") != 0);
    const auto& c = collected.counters[key].host_samples();
    EXPECT_GE(c.exact() + c.held(), c.taken() / 2);
    EXPECT_EQ(c.access(), lull::v1::HOST_SAMPLE_ACCESS_READV);
  }
}

// A child that does no GPU work is not recorded, and nobody looks at it.
TEST_F(HostSamples, AreNotOfAForkChildThatIsNotRecorded) {
  Start();
  RunGuest(lull::testing::interpreters().back().path, "1.5", "fork");
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  CheckCounters(collected);
  ASSERT_EQ(collected.processes.size(), 1u);
  Told told = ToldOf(collected, collected.processes.begin()->first);
  EXPECT_GE(told.samples, 3u);
  EXPECT_EQ(told.functions.count("in_the_child"), 0u);
}

TEST_F(HostSamples, GoOnInANewImage) {
  Start();
  RunGuest(lull::testing::interpreters().back().path, "1.5", "exec");
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  CheckCounters(collected);
  ASSERT_EQ(collected.processes.size(), 2u);
  for (const auto& [key, process] : collected.processes) {
    EXPECT_TRUE(ToldOf(collected, key).functions.count("busy") != 0);
  }
}

// What it does is no time of the program that it has replaced.
TEST_F(HostSamples, EndWhereAnotherProgramTakesThePlace) {
  Start();
  RunGuest(lull::testing::interpreters().back().path, "1.5", "leave");
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  CheckCounters(collected);
  ASSERT_EQ(collected.processes.size(), 1u);
  EXPECT_GE(ToldOf(collected, collected.processes.begin()->first).samples, 3u);
}

TEST_F(HostSamples, StandThreadsThatComeAndGo) {
  Start();
  RunGuest(lull::testing::interpreters().back().path, "2", "thread");
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  CheckCounters(collected);
  ASSERT_EQ(collected.processes.size(), 1u);
  EXPECT_GE(ToldOf(collected, collected.processes.begin()->first).samples, 5u);
}

TEST_F(HostSamples, AreNotTakenUnlessWanted) {
  Start(/*samples=*/false);
  RunGuest(lull::testing::interpreters().back().path, "1");
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  ASSERT_EQ(collected.processes.size(), 1u);
  const uint64_t key = collected.processes.begin()->first;
  EXPECT_EQ(ToldOf(collected, key).samples, 0u);
  EXPECT_FALSE(collected.counters[key].has_host_samples());
}

TEST_F(HostSamples, AreNotTakenOfWhoSleeps) {
  Start(/*samples=*/true, /*dormant=*/true);
  RunGuest(lull::testing::interpreters().back().path, "1");
  ASSERT_TRUE(Finish().ok());
  Collected collected = collector_->collected();
  ASSERT_EQ(collected.processes.size(), 1u);
  EXPECT_EQ(ToldOf(collected, collected.processes.begin()->first).samples, 0u);
}

}  // namespace
}  // namespace lull::relay
