// Memory as text, as JSON and as advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/advice.h"
#include "cli/render/human.h"
#include "cli/render/json.h"
#include "cli/render/memory_words.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"

namespace lull {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(MemoryText, ShowsPeaksTheirLinesStepsGrowthAndRetries) {
  testing::ExpectGolden("memory",
                        MemoryText(testing::FixedMemory(), v1::GROUP_BY_LINE));
}

TEST(MemoryText, SaysSoWhenNothingWasAllocated) {
  v1::ReportReply reply;
  *reply.mutable_job() = testing::FixedJob();
  EXPECT_THAT(MemoryText(reply, v1::GROUP_BY_LINE),
              HasSubstr("No allocation was seen."));
}

TEST(MemoryWords, NameALineThatHasAtLeastHalfOfTheGrowth) {
  v1::MemoryRow row = testing::FixedMemory().memory().rows(0);
  EXPECT_THAT(GrowthWords(row), HasSubstr("at model.py:52 train_step"));
  row.mutable_growth()->mutable_sites(0)->set_bytes(row.growth().bytes() / 2 - 1);
  EXPECT_THAT(GrowthWords(row), Not(HasSubstr("model.py")));
}

TEST(MemoryWords, TellAFailureFromARetry) {
  v1::MallocRetries retries;
  retries.set_failed_calls(2);
  EXPECT_THAT(RetryWords(retries), HasSubstr("no call tried again"));
}

TEST(MemoryJson, HasAllOfAllRowsAndNullForWhatIsNotKnown) {
  Json json = Json::parse(JsonText(MemoryJson(testing::FixedMemory())));
  const Json& tensors = json["memory"][0];
  EXPECT_EQ(tensors["device"], 0);
  EXPECT_EQ(tensors["peak_at_ms"], 61'900.0);
  EXPECT_EQ(tensors["reserved_at_peak_bytes"], 13'900ull << 20);
  EXPECT_EQ(tensors["points"].size(), 730u);
  EXPECT_EQ(tensors["points"][1]["step"], 2);
  EXPECT_EQ(tensors["peak_sites"][1]["site"]["line"], 52);
  EXPECT_EQ(tensors["growth"]["bytes_per_step"], 1'048'576.0);
  EXPECT_EQ(tensors["growth"]["sites"][0]["blocks"], 728);
  const Json& pinned = json["memory"][1];
  for (const char* key : {"device", "reserved_bytes", "reserved_peak_bytes",
                          "reserved_at_peak_bytes", "growth"}) {
    EXPECT_TRUE(pinned[key].is_null()) << key;
  }
  EXPECT_TRUE(pinned["points"][0]["step"].is_null());
  EXPECT_TRUE(pinned["points"][0]["reserved_bytes"].is_null());
  EXPECT_EQ(json["malloc_retries"][0]["retries"], 3);
  EXPECT_EQ(json["malloc_retries"][0]["total_ms"], 186.0);
}

v1::ReportReply WithMemory() {
  v1::ReportReply reply;
  *reply.mutable_memory() = testing::FixedMemory().memory();
  return reply;
}

const Advice* Find(const std::vector<Advice>& all, const std::string& rule) {
  for (const Advice& advice : all) {
    if (advice.rule == rule) return &advice;
  }
  return nullptr;
}

TEST(MemoryAdvice, IsExpandableSegmentsWhereRetriesMeetAnUnusedCache) {
  std::vector<Advice> all = WhatToChangeFirst(WithMemory());
  const Advice* found = Find(all, "fragmented_memory");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->finding, AllOf(HasSubstr("3 calls tried again"),
                                    HasSubstr("13.9 GiB"), HasSubstr("8.00 GiB")));
  EXPECT_THAT(found->advice, HasSubstr("expandable_segments:True"));
  EXPECT_EQ(found->time_ns, 186'000'000u);
}

TEST(MemoryAdvice, IsNotExpandableSegmentsWithoutEither) {
  v1::ReportReply reply = WithMemory();
  reply.mutable_memory()->mutable_retries(0)->set_retries(0);
  EXPECT_EQ(Find(WhatToChangeFirst(reply), "fragmented_memory"), nullptr);
  reply = WithMemory();
  reply.mutable_memory()->mutable_rows(0)->set_reserved_peak_bytes(9'000ll << 20);
  EXPECT_EQ(Find(WhatToChangeFirst(reply), "fragmented_memory"), nullptr)
      << "a tenth is rounding";
  reply = WithMemory();
  reply.mutable_memory()->mutable_retries(0)->set_pid(4313);
  EXPECT_EQ(Find(WhatToChangeFirst(reply), "fragmented_memory"), nullptr)
      << "another process";
}

TEST(MemoryAdvice, NamesTheLineOfSteadyGrowth) {
  std::vector<Advice> all = WhatToChangeFirst(WithMemory());
  const Advice* found = Find(all, "growing_memory");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found, &all.back()) << "it costs no time";
  EXPECT_THAT(found->finding,
              AllOf(HasSubstr("1.00 MiB a step"), HasSubstr("model.py:52 train_step")));
  v1::ReportReply reply = WithMemory();
  reply.mutable_memory()->mutable_rows(0)->clear_growth();
  EXPECT_EQ(Find(WhatToChangeFirst(reply), "growing_memory"), nullptr);
}

TEST(MemoryAdvice, PrefersTensorsToTheSegmentsThatTheyLieIn) {
  v1::ReportReply reply = WithMemory();
  v1::MemoryRow* segments = reply.mutable_memory()->mutable_rows(2);
  *segments->mutable_growth() = reply.memory().rows(0).growth();
  segments->mutable_growth()->set_bytes(900ll << 20);
  std::vector<Advice> all = WhatToChangeFirst(reply);
  ASSERT_THAT(all, Not(IsEmpty()));
  EXPECT_THAT(Find(all, "growing_memory")->finding, HasSubstr("torch_cuda"));
}

}  // namespace
}  // namespace lull
