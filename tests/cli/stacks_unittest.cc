// Where threads are, as people and programs read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/render/hot.h"
#include "cli/render/human.h"
#include "cli/render/json.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using ::testing::ElementsAre;
using testing::FixedStacks;
using ::testing::HasSubstr;
using testing::Keys;
using ::testing::Not;
using testing::Parsed;

TEST(StacksText, ShowsThreadsThenTheirStack) {
  testing::ExpectGolden("stacks", StacksText(FixedStacks(), v1::GROUP_BY_LINE));
}

TEST(StacksText, NamesRunsOfRanks) {
  v1::ReportReply reply = FixedStacks();
  v1::ThreadStack* stack = reply.mutable_stacks()->mutable_stacks(0);
  auto text_of = [&](std::initializer_list<int> ranks) {
    const v1::StackThread one = stack->threads(0);
    stack->clear_threads();
    for (int rank : ranks) {
      *stack->add_threads() = one;
      stack->mutable_threads()->rbegin()->set_rank(rank);
    }
    return StacksText(reply, v1::GROUP_BY_LINE);
  };
  EXPECT_THAT(text_of({0, 1, 2, 3, 5, 8, 9, 10}),
              HasSubstr("ranks 0 to 3, 5, 8 to 10"));
  EXPECT_THAT(text_of({0, 1}), HasSubstr("ranks 0, 1,"));
  EXPECT_THAT(text_of({7}), HasSubstr("1 main thread, rank 7,"));
}

TEST(StacksText, SaysOfAJobThatIsOverWhereItWasAtLast) {
  v1::ReportReply reply = FixedStacks();
  reply.mutable_job()->set_ended(true);
  reply.mutable_job()->set_exit_status_known(true);
  const std::string text = StacksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr("5 processes were at last"));
  EXPECT_THAT(text, Not(HasSubstr("5 processes are")));
  EXPECT_THAT(text, Not(HasSubstr("No step has ended")));
}

TEST(StacksText, SaysWhenThatWas) {
  v1::ReportReply reply = FixedStacks();
  v1::NewestStacks* stacks = reply.mutable_stacks();
  stacks->set_behind_ns(4'000'000'000);
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE), HasSubstr("5 processes are, by"));
  stacks->set_behind_ns(12'000'000'000);
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE),
              HasSubstr("5 processes were 12.0 s ago (nothing newer has come), by"));
  stacks->set_earlier(true);
  const std::string text = StacksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr("5 processes were 2 min 10 s after the job's start, by"));
}

TEST(StacksText, SaysSinceWhenNoStepHasEndedWhereThatIsLong) {
  v1::ReportReply reply = FixedStacks();
  v1::NewestStacks* stacks = reply.mutable_stacks();
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE),
              HasSubstr("No step has ended for 29.8 s; one takes 102 ms."));
  v1::Job& job = *reply.mutable_job();
  job.set_ended(true);
  job.set_exit_status_known(true);
  job.set_exit_status(0);
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE), Not(HasSubstr("No step")));
  job.set_exit_status(134);  // NCCL's own watchdog, say
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE), HasSubstr("No step has ended"));
  stacks->set_earlier(true);
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE), Not(HasSubstr("No step")));
  stacks->set_earlier(false);
  stacks->set_step_ns(10'000'000'000);  // steps of ten seconds
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE), Not(HasSubstr("No step")));
  stacks->set_step_ns(1'000'000);
  stacks->set_since_step_ns(1'000'000'000);
  EXPECT_THAT(StacksText(reply, v1::GROUP_BY_LINE), Not(HasSubstr("No step")));
  stacks->set_step_ns(0);
  EXPECT_EQ(Parsed(StacksJson(reply))["step_ms"], nullptr);
}

TEST(FoldedThreads, CountsThreads) {
  EXPECT_EQ(
      FoldedThreads(FixedStacks()),
      "train (ddp.py:31);all_reduce "
      "(/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:1320) "
      "3\n"
      "load (ddp.py:12);[cut] 1\n");
}

TEST(StacksJson, HasTheAgreedKeys) {
  const Json json = Parsed(StacksJson(FixedStacks()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "stacks", "at_ms", "window_ms", "processes",
                          "behind_ms", "since_step_ms", "step_ms", "phase", "setup_ms",
                          "losses", "overhead"));
  const Json& wait = json["stacks"][0];
  EXPECT_THAT(Keys(wait), ElementsAre("role", "site", "stack", "cut", "threads"));
  EXPECT_EQ(wait["role"], "main");
  EXPECT_EQ(wait["site"]["line"], 31);
  EXPECT_EQ(wait["stack"][0]["line"], 1320);
  EXPECT_THAT(Keys(wait["threads"][0]), ElementsAre("rank", "pid", "tid", "state",
                                                    "age_ms", "same_for_ms", "looks"));
  EXPECT_EQ(wait["threads"][0]["rank"], 0);
  EXPECT_EQ(wait["threads"][0]["state"], "blocked");
  EXPECT_EQ(wait["threads"][0]["same_for_ms"], 29'700);
  EXPECT_EQ(json["stacks"][2]["site"], nullptr);
  EXPECT_EQ(json["stacks"][2]["threads"][0]["rank"], nullptr);
}

}  // namespace
}  // namespace lull
