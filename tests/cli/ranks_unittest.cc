// Who waited for whom, as people and programs read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/human.h"
#include "cli/render/json.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using ::testing::ElementsAre;
using testing::FixedRanks;
using ::testing::HasSubstr;
using testing::Keys;
using ::testing::Not;
using testing::Parsed;

TEST(RanksText, ShowsRanksThenWhyTheyWereLate) {
  testing::ExpectGolden("ranks", RanksText(FixedRanks(), v1::GROUP_BY_LINE));
}

TEST(RanksText, SaysWhatIsNotKnown) {
  v1::ReportReply reply = FixedRanks();
  v1::Ranks* ranks = reply.mutable_ranks();
  ranks->set_cut(true);
  ranks->set_world_size(8);
  ranks->set_error_kind(v1::CLOCK_ERROR_KIND_NONE);
  std::string text = RanksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr("Only the last 2 min 06 s were looked at"));
  EXPECT_THAT(text, HasSubstr("the other 7 ranks"));
  EXPECT_THAT(text, HasSubstr("clocks of ranks are apart is not known"));
  for (v1::RankRow& row : *ranks->mutable_ranks()) row.clear_culprits();
  ranks->set_error_kind(v1::CLOCK_ERROR_KIND_BOUND);
  ranks->set_error_ns(20'000);
  ranks->set_world_size(2);
  text = RanksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr("compared to within 20.0 us"));
  EXPECT_THAT(text, HasSubstr("No rank was late for a cause that is known."));
}

TEST(RanksText, SaysWhatItCountsWhereNoStepsAreKnown) {
  v1::ReportReply reply = FixedRanks();
  EXPECT_THAT(RanksText(reply, v1::GROUP_BY_LINE), HasSubstr(" of 1,200 steps, by "));
  EXPECT_EQ(Parsed(RanksJson(reply))["steps_known"], true);
  reply.mutable_ranks()->set_counts_collectives(true);
  const std::string text = RanksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr(" of 1,200 collectives, by "));
  EXPECT_THAT(text, Not(HasSubstr("steps")));
  EXPECT_EQ(Parsed(RanksJson(reply))["steps_known"], false);
}

TEST(RanksText, NamesHostsWhereThereAreSeveral) {
  v1::ReportReply reply = FixedRanks();
  EXPECT_THAT(RanksText(reply, v1::GROUP_BY_LINE), Not(HasSubstr("  host\n")));
  for (const char* host : {"node-a", "node-b"}) {
    v1::Job::Part* part = reply.mutable_job()->add_parts();
    part->set_id(host);
    part->set_host(host);
  }
  reply.mutable_job()->set_host("node-a");
  reply.mutable_ranks()->mutable_ranks(0)->set_host("node-b");
  const std::string text = RanksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr("; one of 2 parts, on node-a\n"));
  EXPECT_THAT(text, HasSubstr("  host\n"));
  EXPECT_THAT(text, HasSubstr("  node-b\n"));
  const Json json = Parsed(RanksJson(reply));
  EXPECT_EQ(json["job"]["parts"][1]["host"], "node-b");
  v1::ListJobsReply jobs;
  *jobs.add_jobs() = reply.job();
  EXPECT_THAT(JobsText(jobs), HasSubstr("  node-a, node-b  "));
  EXPECT_FALSE(Parsed(RanksJson(FixedRanks()))["job"].contains("parts"));
}

// As with --rank 0: rank 1 may be late.
TEST(RanksText, SaysNothingOfRanksThatAreNotShown) {
  v1::ReportReply reply = FixedRanks();
  auto* rows = reply.mutable_ranks()->mutable_ranks();
  rows->DeleteSubrange(0, 1);
  const std::string text = RanksText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text,
              HasSubstr("None of these ranks was late for a cause that is known."));
}

TEST(RanksJson, HasTheAgreedKeys) {
  const Json json = Parsed(RanksJson(FixedRanks()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "ranks", "clock", "late_stretches", "on_device",
                          "world_size", "collectives", "steps", "steps_known",
                          "unexplained_ms", "unmatched_ms", "looked_at", "phase",
                          "setup_ms", "losses", "overhead"));
  const Json& late = json["ranks"][0];
  EXPECT_THAT(Keys(late), ElementsAre("rank", "host", "pid", "step_ms", "late_steps",
                                      "waited_ms", "cost_to_others_ms",
                                      "communication_ms", "exposed_ms", "culprits"));
  EXPECT_EQ(late["rank"], 1);
  EXPECT_EQ(late["cost_to_others_ms"], 7'120);
  EXPECT_THAT(Keys(late["culprits"][0]),
              ElementsAre("cause", "file", "line", "function", "steps", "total_ms",
                          "cost_to_others_ms"));
  EXPECT_EQ(late["culprits"][0]["line"], 8);
  EXPECT_EQ(late["culprits"][1]["line"], nullptr);
  EXPECT_EQ(json["clock"]["error_ns"], 0);
  EXPECT_EQ(json["clock"]["error_kind"], "bound");
}

}  // namespace
}  // namespace lull
