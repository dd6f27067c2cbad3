// A call is made on the stack that a thread was given, or not at all: next to another
// stack (a coroutine's) lies data of the program's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/daemon/attach/inject/victim_process.h"

namespace lull::inject {
namespace {

using testing::HasSubstr;

struct Refusal {
  const char* kind;
  const char* reason;
};

class OnAnotherStack : public testing::TestWithParam<Refusal> {};

TEST_P(OnAnotherStack, NothingIsCalledAndNothingOverwritten) {
  VictimProcess victim(GetParam().kind, 1);
  Request request = ProbeRequest(victim.pid());
  request.patience = absl::Milliseconds(500);
  for (int i = 0; i < 3; ++i) {
    absl::Status status = Inject(request).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().reason));
  }
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0) << victim.page().detail << " bytes overwritten";
}

constexpr char kCoroutine[] = "runs on a stack that is not its own";
INSTANTIATE_TEST_SUITE_P(
    Kinds, OnAnotherStack,
    testing::Values(Refusal{"fiber", kCoroutine}, Refusal{"large_fiber", kCoroutine},
                    Refusal{"fiber_in_heap", kCoroutine},
                    Refusal{"fiber_in_thread", kCoroutine},
                    Refusal{"signal_stack", kCoroutine},
                    Refusal{"raw_clone", "has a stack that glibc has not made"}),
    [](const auto& info) { return std::string(info.param.kind); });

class OnItsOwnStack : public testing::TestWithParam<const char*> {};

TEST_P(OnItsOwnStack, AThreadMakesTheCall) {
  VictimProcess victim(GetParam(), 1);
  pid_t pid = victim.pid();
  if (std::string(GetParam()) == "forked_by_thread") {
    while (victim.page().detail == 0) absl::SleepFor(absl::Milliseconds(2));
    pid = static_cast<pid_t>(victim.page().detail.load());
  }
  for (int i = 0; i < 5; ++i) {
    auto outcome = Inject(ProbeRequest(pid));
    EXPECT_TRUE(outcome.ok()) << outcome.status();
  }
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0) << victim.page().detail;
}

INSTANTIATE_TEST_SUITE_P(Kinds, OnItsOwnStack,
                         testing::Values("fiber_beside_main", "given_stack",
                                         "forked_by_thread"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lull::inject
