#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/fixed_replies.h"
#include "tests/daemon/advice/findings.h"

namespace lull {
namespace {

using ::testing::AllOf;
using testing::FindingsOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::ReportReply WithMemory() {
  v1::ReportReply reply;
  *reply.mutable_memory() = testing::FixedMemory().memory();
  return reply;
}

const v1::Finding* Find(const std::vector<v1::Finding>& all, const std::string& rule) {
  for (const v1::Finding& finding : all) {
    if (finding.rule() == rule) return &finding;
  }
  return nullptr;
}

TEST(MemoryAdvice, IsExpandableSegmentsWhereRetriesMeetAnUnusedCache) {
  std::vector<v1::Finding> all = FindingsOf(WithMemory());
  const v1::Finding* found = Find(all, "fragmented_memory");
  ASSERT_NE(found, nullptr);
  EXPECT_THAT(found->finding(), AllOf(HasSubstr("3 calls tried again"),
                                      HasSubstr("13.9 GiB"), HasSubstr("8.00 GiB")));
  EXPECT_THAT(found->advice(), HasSubstr("expandable_segments:True"));
  EXPECT_EQ(found->time_ns(), 186'000'000u);
}

TEST(MemoryAdvice, IsNotExpandableSegmentsWithoutEither) {
  v1::ReportReply reply = WithMemory();
  reply.mutable_memory()->mutable_retries(0)->set_retries(0);
  EXPECT_EQ(Find(FindingsOf(reply), "fragmented_memory"), nullptr);
  reply = WithMemory();
  reply.mutable_memory()->mutable_rows(0)->set_reserved_peak_bytes(9'000ll << 20);
  EXPECT_EQ(Find(FindingsOf(reply), "fragmented_memory"), nullptr)
      << "a tenth is rounding";
  reply = WithMemory();
  reply.mutable_memory()->mutable_retries(0)->set_pid(4313);
  EXPECT_EQ(Find(FindingsOf(reply), "fragmented_memory"), nullptr) << "another process";
}

TEST(MemoryAdvice, NamesTheLineOfSteadyGrowth) {
  std::vector<v1::Finding> all = FindingsOf(WithMemory());
  const v1::Finding* found = Find(all, "growing_memory");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found, &all.back()) << "it costs no time";
  EXPECT_THAT(found->finding(),
              AllOf(HasSubstr("1.00 MiB a step"), HasSubstr("model.py:52 train_step")));
  v1::ReportReply reply = WithMemory();
  reply.mutable_memory()->mutable_rows(0)->clear_growth();
  EXPECT_EQ(Find(FindingsOf(reply), "growing_memory"), nullptr);
}

TEST(MemoryAdvice, PrefersTensorsToTheSegmentsThatTheyLieIn) {
  v1::ReportReply reply = WithMemory();
  v1::MemoryRow* segments = reply.mutable_memory()->mutable_rows(2);
  *segments->mutable_growth() = reply.memory().rows(0).growth();
  segments->mutable_growth()->set_bytes(900ll << 20);
  std::vector<v1::Finding> all = FindingsOf(reply);
  ASSERT_THAT(all, Not(IsEmpty()));
  EXPECT_THAT(Find(all, "growing_memory")->finding(), HasSubstr("torch_cuda"));
}

}  // namespace
}  // namespace lull
