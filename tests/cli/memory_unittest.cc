// Memory as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/human.h"
#include "cli/render/json.h"
#include "daemon/words/memory_words.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"

namespace lull {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace lull
