// Things go wrong while the call is on its way: the victim never notices.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/daemon/attach/inject/victim_process.h"

namespace lull::inject {
namespace {

// Starts inject_main on the victim.
pid_t StartInjector(pid_t victim) {
  std::string number = absl::StrCat(victim);
  std::string program = Built("inject_main");
  std::string library = Built("libinject_probe.so");
  // LeakSanitizer calls it an error to be killed while it looks.
  const char* options = getenv("ASAN_OPTIONS");
  std::string no_leaks =
      absl::StrCat(options == nullptr ? "" : options, ":detect_leaks=0");
  pid_t pid = fork();
  if (pid == 0) {
    setenv("ASAN_OPTIONS", no_leaks.c_str(), 1);
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
    execl(program.c_str(), program.c_str(), number.c_str(), library.c_str(), "probe",
          "abc", nullptr);
    _exit(127);
  }
  return pid;
}

void InjectAndKill(pid_t victim, absl::Duration delay) {
  pid_t pid = StartInjector(victim);
  absl::SleepFor(delay);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

class TracerKilled : public testing::TestWithParam<const char*> {};

TEST_P(TracerKilled, AtRandomMomentsTheVictimGoesOnUncorrupted) {
  VictimProcess victim(GetParam(), 1);
  std::mt19937 random(20261121);
  // Where in a run the call is: measured, so that kills fall before, in and behind it.
  absl::Time begin = absl::Now();
  waitpid(StartInjector(victim.pid()), nullptr, 0);
  double whole_us = absl::ToDoubleMicroseconds(absl::Now() - begin);
  std::uniform_int_distribution<int> micros(1000, static_cast<int>(1.5 * whole_us));
  for (int i = 0; i < 200; ++i) {
    InjectAndKill(victim.pid(), absl::Microseconds(micros(random)));
    ASSERT_TRUE(victim.IsAlive());
  }
  long rounds = victim.page().rounds;
  absl::SleepFor(absl::Milliseconds(700));
  EXPECT_GT(victim.page().rounds, rounds) << "it stands still";
  auto outcome = Inject(ProbeRequest(victim.pid()));
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  // Calls that were made in all: some of the kills were early enough, some late.
  long calls = outcome->result >> 32;
  printf("%ld calls of 202 in %.1f s, one alone took %.1f ms\n", calls,
         absl::ToDoubleSeconds(absl::Now() - begin), whole_us / 1000);
  EXPECT_GT(calls, 2);
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0) << victim.page().detail;
}

INSTANTIATE_TEST_SUITE_P(Victims, TracerKilled,
                         testing::Values("registers", "condition"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Disturbed, AVictimThatDiesAtRandomMomentsEndsTheCall) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> micros(0, 12'000);
  int ended = 0;
  for (int i = 0; i < 60; ++i) {
    VictimProcess victim("compute", 3);
    std::thread killer([&, delay = micros(random)] {
      absl::SleepFor(absl::Microseconds(delay));
      kill(victim.pid(), SIGKILL);
    });
    absl::Time begin = absl::Now();
    auto outcome = Inject(ProbeRequest(victim.pid()));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
    if (!outcome.ok()) {
      ++ended;
      EXPECT_EQ(outcome.status().code(), absl::StatusCode::kNotFound)
          << outcome.status();
    }
    killer.join();
  }
  EXPECT_GT(ended, 5) << "the kills came too late to show anything";
}

TEST(Disturbed, TwoInjectorsAtOnceBothSucceed) {
  for (int threads : {1, 4}) {
    VictimProcess victim("compute", threads);
    std::vector<std::thread> injectors;
    std::atomic<int> good = 0;
    for (int i = 0; i < 2; ++i) {
      injectors.emplace_back([&] {
        for (int j = 0; j < 20; ++j) {
          auto outcome = Inject(ProbeRequest(victim.pid()));
          EXPECT_TRUE(outcome.ok()) << outcome.status();
          good += outcome.ok();
        }
      });
    }
    for (std::thread& injector : injectors) injector.join();
    EXPECT_EQ(good, 40);
    EXPECT_EQ(victim.End(), 0);
  }
}

TEST(Disturbed, JobControlDuringTheCallIsObeyedAfterIt) {
  VictimProcess victim("registers", 1);
  std::atomic<bool> over = false;
  std::thread control([&] {
    while (!over) {
      kill(victim.pid(), SIGSTOP);
      absl::SleepFor(absl::Milliseconds(2));
      kill(victim.pid(), SIGCONT);
      absl::SleepFor(absl::Milliseconds(3));
    }
  });
  int good = 0;
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (good < 50 && absl::Now() < end) {
    auto outcome = Inject(ProbeRequest(victim.pid()));
    good += outcome.ok();
    if (!outcome.ok()) {
      EXPECT_EQ(outcome.status().code(), absl::StatusCode::kFailedPrecondition)
          << outcome.status();
    }
  }
  over = true;
  control.join();
  EXPECT_GE(good, 5);  // all, but in an emulator, where each takes half a second
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0);
}

// It is what the thread waits for, and what it sees in the end is up to its handler.
TEST(Disturbed, ASignalDuringTheCallEndsAWaitAsItWouldHaveWithoutIt) {
  VictimProcess victim("until_signal", 1);
  Request request = ProbeRequest(victim.pid());
  request.function = "probe_signalled";
  for (long rounds : {1, 2, 4, 5}) {
    auto outcome = Inject(request);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->result, 0);
    EXPECT_TRUE(outcome->thread_was_blocked);
    for (int i = 0; i < 500 && victim.page().rounds < rounds; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    ASSERT_EQ(victim.page().rounds, rounds) << "it still waits";
    absl::SleepFor(absl::Milliseconds(50));  // until it waits again
  }
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0) << victim.page().detail;
}

bool HasMapped(pid_t pid, const std::string& library) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

TEST(Disturbed, PythonComputingAndSleepingGoesOn) {
  for (const char* what : {"while True: sum(i * i for i in range(10000))",
                           "import time\nwhile True: time.sleep(0.05)"}) {
    VictimProcess victim({"python3", "-c", what});
    // Before its loader has mapped anything it is refused as linked statically.
    for (int i = 0; i < 500 && !HasMapped(victim.pid(), "libc.so"); ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    std::vector<absl::Duration> pauses;
    for (int i = 0; i < 20; ++i) {
      auto outcome = Inject(ProbeRequest(victim.pid()));
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      pauses.push_back(outcome->stopped);
    }
    EXPECT_TRUE(victim.IsAlive());
    Report(what[0] == 'w' ? "python computing" : "python sleeping", pauses);
  }
}

}  // namespace
}  // namespace lull::inject
