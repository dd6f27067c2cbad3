#include "cli/render/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/render/schema.h"
#include "tests/cli/fixed_fleet.h"
#include "tests/cli/golden.h"
#include "tests/cli/random_reply.h"
#include "tests/cli/schema_check.h"

namespace lull {
namespace {

using testing::ExpectGolden;
using testing::FixedFleet;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::FleetRequest FixedRequest() {
  v1::FleetRequest request;
  request.set_since_unix_ns(1'714'000'000'000'000'000);
  return request;
}

TEST(Fleet, TellsCausesLinesJobsAndLateHosts) {
  ExpectGolden("fleet",
               FleetText(FixedFleet(), FixedRequest(), "that ran in the last 7d"));
}

TEST(Fleet, TellsTheSameAsJson) {
  ExpectGolden("fleet_json", JsonText(FleetJson(FixedFleet(), FixedRequest())));
}

TEST(Fleet, WithoutJobsSaysWhereItLooked) {
  v1::FleetReply reply;
  reply.set_store(v1::FLEET_STORE_COLLECTOR);
  const std::string text = FleetText(reply, {}, "named x, that ran in the last 1h");
  EXPECT_THAT(text, HasSubstr("There is no job named x, that ran in the last 1h.\n"));
  EXPECT_THAT(text, HasSubstr("lulld --clickhouse"));
}

TEST(Fleet, MarksWhatIsEstimatedAndNothingElse) {
  v1::FleetReply reply;
  reply.mutable_totals()->set_jobs(1);
  reply.mutable_totals()->set_traced_ns(10'000'000);
  reply.mutable_totals()->set_idle_ns(5'000'000);
  reply.mutable_totals()->set_estimated_ms(5.04);
  v1::FleetCause& cause = *reply.add_causes();
  cause.set_cause("gc");
  cause.set_total_ns(5'000'000);
  cause.set_estimated_ms(5.04);
  EXPECT_THAT(FleetText(reply, {}, ""), Not(HasSubstr("~")));
  cause.set_estimated_ms(50);
  reply.mutable_totals()->set_estimated_ms(50);
  const std::string text = FleetText(reply, {}, "");
  EXPECT_THAT(text, HasSubstr("~50.0 ms  100.0 %  5.00 ms"));
  EXPECT_THAT(text, HasSubstr("~ estimated: "));
}

TEST(Fleet, WithoutATracedGpuHasJobsAlone) {
  v1::FleetReply reply;
  reply.mutable_totals()->set_jobs(1);
  reply.add_jobs()->set_id(std::string(32, 'a'));
  const std::string text = FleetText(reply, {}, "of mine");
  EXPECT_THAT(text, HasSubstr("In none of them a GPU was traced"));
  EXPECT_THAT(text, Not(HasSubstr("Idle, by")));
  EXPECT_THAT(text, HasSubstr("aaaaaaaa"));
}

TEST(Fleet, SchemaAllowsWhatIsPrintedAndNothingElse) {
  testing::SchemaCheck check(AnswerSchema("fleet"));
  testing::RandomMessages random(19);
  for (int i = 0; i < 600; ++i) {
    v1::FleetReply reply;
    v1::FleetRequest request;
    random.Fill(&reply, 3);
    random.Fill(&request, 1);
    ASSERT_EQ(check.Check(Json::parse(JsonText(FleetJson(reply, request)))), "") << i;
    FleetText(reply, request, "whatever is in it");
  }
  EXPECT_THAT(check.Unseen(), IsEmpty());
}

}  // namespace
}  // namespace lull
