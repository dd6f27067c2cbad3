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

TEST(MemoryText, MarksWhatIsEstimatedAndSaysWhatTheMarkMeans) {
  v1::ReportReply memory = testing::FixedMemory();
  v1::ReportReply allocations = testing::FixedAllocations();
  EXPECT_THAT(MemoryText(memory, v1::GROUP_BY_LINE), Not(HasSubstr("~")));
  EXPECT_THAT(AllocationsText(allocations, v1::GROUP_BY_LINE), Not(HasSubstr("~")));
  auto* site = memory.mutable_memory()->mutable_rows(0)->mutable_peak_sites(1);
  site->set_estimated(true);
  site->set_bytes(int64_t{512} << 20);
  site->set_error_bytes(32 << 20);
  auto* line = allocations.mutable_allocations()->mutable_allocation_sites(0);
  line->set_estimated(true);
  for (const std::string& text : {MemoryText(memory, v1::GROUP_BY_LINE),
                                  AllocationsText(allocations, v1::GROUP_BY_LINE)}) {
    EXPECT_THAT(text, HasSubstr("~ estimated: of blocks under 64 KiB some are drawn"));
  }
  EXPECT_THAT(MemoryText(memory, v1::GROUP_BY_LINE), HasSubstr("~512 MiB"));
  EXPECT_THAT(AllocationsText(allocations, v1::GROUP_BY_LINE), HasSubstr("~2.93 TiB"));
  const Json json = Json::parse(JsonText(MemoryJson(memory)));
  EXPECT_EQ(json["memory"][0]["peak_sites"][1]["estimated"], true);
  EXPECT_EQ(json["memory"][0]["peak_sites"][1]["error_bytes"], 32 << 20);
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
