// Victims of all kinds: the call is made, and nothing of it shows in them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <ostream>
#include <thread>

#include "absl/time/clock.h"
#include "tests/daemon/attach/inject/victim_process.h"

namespace lull::inject {
namespace {

constexpr int64_t kSumOfAbc = 'a' + 'b' + 'c';

struct Case {
  const char* kind;
  int threads = 1;
  int calls = 5;
  const char* preload = nullptr;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.kind; }

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.kind;
  if (info.param.threads > 1) name += "_" + std::to_string(info.param.threads);
  if (info.param.preload != nullptr) {
    name += std::string(info.param.preload).find("jemalloc") != std::string::npos
                ? "_jemalloc"
                : "_tcmalloc";
  }
  return name;
}

class InjectInto : public testing::TestWithParam<Case> {};

TEST_P(InjectInto, CallsTheFunctionAndLeavesTheVictimAsItWas) {
  const Case& c = GetParam();
  std::vector<std::string> environment;
  if (c.preload != nullptr) {
    environment.push_back(std::string("LD_PRELOAD=") + c.preload);
  }
  VictimProcess victim(c.kind, c.threads, environment);
  std::vector<absl::Duration> pauses;
  std::vector<absl::Duration> loads;  // with dlopen
  std::vector<absl::Duration> others;
  absl::Duration waited;
  int looks = 0;
  for (int i = 1; i <= c.calls; ++i) {
    Stops stops;
    auto outcome = Inject(ProbeRequest(victim.pid()), &stops);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->result, static_cast<int64_t>(i) << 32 | kSumOfAbc);
    EXPECT_EQ(outcome->loaded, i == 1);
    EXPECT_EQ(outcome->loading > absl::ZeroDuration(), i == 1);
    if (i == 1) loads.push_back(outcome->loading);
    pauses.push_back(outcome->stopped);
    if (outcome->looks > 0) others.push_back(outcome->longest_other);
    looks += outcome->looks;
    const Held longest = std::max(stops.running, stops.sleeping);
    EXPECT_EQ(longest.time,
              std::max({outcome->stopped, outcome->loading, outcome->longest_other}));
    EXPECT_LE(longest.waited, longest.time);
    waited += longest.waited;
    if (i > 1 && outcome->looks == 0) {
      EXPECT_EQ(stops.sleeping.time > absl::ZeroDuration(),
                outcome->thread_was_blocked);
      EXPECT_EQ(stops.running.time > absl::ZeroDuration(),
                !outcome->thread_was_blocked);
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  // They compute, on too few processors: whoever is stopped has to queue.
  const bool crowded =
      c.threads > 8 * static_cast<int>(std::thread::hardware_concurrency());
  if (crowded && std::string(c.kind) == "compute") {
    EXPECT_GT(waited, absl::ZeroDuration());
  }
  long rounds = victim.page().rounds;
  absl::SleepFor(absl::Milliseconds(700));
  bool ends_only_when_told = rounds == 0 && victim.page().rounds == 0;
  EXPECT_TRUE(victim.page().rounds > rounds || ends_only_when_told)
      << "it stands still";
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0) << "detail " << victim.page().detail;
  Report(NameOfCase({c, 0}) + " dlopen", loads);
  Report(NameOfCase({c, 0}), pauses);
  Report(NameOfCase({c, 0}) + " others", others);
  printf("looks %d\n", looks);
}

INSTANTIATE_TEST_SUITE_P(Computing, InjectInto,
                         testing::Values(Case{"registers", 1, 100},
                                         Case{"errno", 1, 20}, Case{"deep"},
                                         Case{"signals"}, Case{"signals_restart"},
                                         Case{"signals", 8}, Case{"compute", 64},
                                         Case{"beside_small_stack"},
                                         Case{"sigtimedwait"}),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(
    Allocating, InjectInto,
    testing::Values(Case{"allocate", 1}, Case{"allocate", 64}, Case{"dlopen", 1},
                    Case{"dlopen", 8}, Case{"fork", 1}, Case{"fork", 6},
                    Case{"allocate", 8, 5, "libtcmalloc_minimal.so.4"},
                    Case{"allocate", 8, 5, "libjemalloc.so.2"}),
    NameOfCase);
INSTANTIATE_TEST_SUITE_P(Blocked, InjectInto,
                         testing::Values(Case{"read"}, Case{"readv"},
                                         Case{"readv_socket"}, Case{"recvmsg"},
                                         Case{"accept"}, Case{"pause"}, Case{"sigwait"},
                                         Case{"sigwaitinfo"}, Case{"endless_epoll"},
                                         Case{"pselect"}, Case{"wait4"}, Case{"flock"},
                                         Case{"semop"}, Case{"msgrcv"}),
                         NameOfCase);

// Waits of 300 ms. None may end early or with an error. The stop itself may make one
// late (in an emulator it takes longer than the wait), and so does a machine with too
// much to do, all by itself: one undisturbed run in three is enough.
class InjectIntoWait : public testing::TestWithParam<const char*> {};

TEST_P(InjectIntoWait, ThatTakesAsLongAsWasAsked) {
  absl::Duration longest, allowed;
  std::vector<absl::Duration> pauses;
  for (int attempt = 0; attempt < 3 && longest >= allowed; ++attempt) {
    allowed = absl::Milliseconds(380);
    VictimProcess victim(GetParam(), 1);
    int blocked = 0;
    for (int i = 0; i < 6; ++i) {
      absl::SleepFor(absl::Milliseconds(130));  // anywhere in a wait
      auto outcome = Inject(ProbeRequest(victim.pid()));
      ASSERT_TRUE(outcome.ok()) << outcome.status();
      blocked += outcome->thread_was_blocked ? 1 : 0;
      pauses.push_back(outcome->stopped);
      allowed += outcome->loading + outcome->stopped;
    }
    EXPECT_GE(blocked, 5) << "one may come between two waits";
    EXPECT_EQ(victim.End(), 0);
    EXPECT_EQ(victim.page().errors, 0) << "errno " << victim.page().detail;
    EXPECT_GT(victim.page().rounds, 1);
    EXPECT_GE(victim.page().shortest, 300'000'000);
    longest = absl::Nanoseconds(victim.page().longest.load());
  }
  EXPECT_LT(longest, allowed);
  Report(GetParam(), pauses);
}

// Waits of 2 ms, so that many end between the look at the thread and its stop. What was
// slept of the one before is not taken from the next.
TEST(InjectIntoManyWaits, NoneEndsEarly) {
  VictimProcess victim("short_epoll", 1);
  std::vector<absl::Duration> pauses;
  for (int i = 0; i < 200; ++i) {
    auto outcome = Inject(ProbeRequest(victim.pid()));
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    pauses.push_back(outcome->stopped);
  }
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0) << "errno " << victim.page().detail;
  EXPECT_GE(victim.page().shortest, 2'000'000);
  Report("short_epoll", pauses);
}

INSTANTIATE_TEST_SUITE_P(Waits, InjectIntoWait,
                         testing::Values("nanosleep", "absolute", "poll", "ppoll",
                                         "select", "epoll", "condition", "futex"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lull::inject
