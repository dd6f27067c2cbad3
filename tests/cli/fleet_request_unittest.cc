#include "cli/commands/fleet_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace lull {
namespace {

using ::testing::HasSubstr;

FleetJobs Between(const std::string& since, const std::string& until) {
  FleetJobs jobs;
  jobs.since = since;
  jobs.until = until;
  return jobs;
}

std::string Complaint(const std::string& since, const std::string& until) {
  return std::string(FleetRequestOf(Between(since, until)).status().message());
}

TEST(FleetRequest, IsRefusedWhereItsTimesAreNone) {
  EXPECT_THAT(Complaint("soon", ""),
              HasSubstr("--since (a time, or all): 'soon' is no time"));
  EXPECT_THAT(Complaint("", ""), HasSubstr("--since (a time, or all): '' is no time"));
  EXPECT_THAT(Complaint("7d", "-1h"), HasSubstr("--until: "));
  EXPECT_THAT(Complaint("24", ""),
              HasSubstr("--since (a time, or all): '24' has no unit"));
  EXPECT_THAT(Complaint("400d", ""),
              HasSubstr("--since (a time, or all): '400d' is more than a year"));
  EXPECT_THAT(Complaint("1h", "1h"), HasSubstr("less long ago"));
}

TEST(FleetRequest, CountsBackFromNow) {
  ASSERT_TRUE(FleetRequestOf(FleetJobs()).ok());
  EXPECT_EQ(FleetRequestOf(FleetJobs())->until_unix_ns(), 0U);
  auto request = FleetRequestOf(Between("30d", "24h"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->until_unix_ns() - request->since_unix_ns(),
            29ULL * 86'400 * 1'000'000'000);
}

TEST(FleetRequest, MayBeOfAnyTime) {
  auto request = FleetRequestOf(Between("all", ""));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->since_unix_ns(), 0U);
}

TEST(FleetRequest, AnOlderCollectorIsNotBelievedToHaveAddedUpByWeek) {
  v1::FleetRequest request;
  v1::FleetReply reply;
  for (auto by : {v1::FLEET_GROUP_HOST, v1::FLEET_GROUP_TAG, v1::FLEET_GROUP_WEEK}) {
    request.set_group_by(by);
    reply.set_grouped_by(by);
    EXPECT_TRUE(CheckGroups(request, reply).ok());
  }
  reply.clear_grouped_by();
  EXPECT_EQ(
      CheckGroups(request, reply).message(),
      "the collector is older than this lull and knows no --by week; use user, host "
      "or name");
  request.set_group_by(v1::FLEET_GROUP_HOST);  // which it knows
  EXPECT_TRUE(CheckGroups(request, reply).ok());
}

TEST(FleetRequest, IsToldInWords) {
  EXPECT_EQ(FleetWords(FleetJobs()), "that ran in the last 7d");
  EXPECT_EQ(FleetWords(Between("all", "")), "of any time");
  EXPECT_EQ(FleetWords(Between("all", "1d")), "that ended more than 1d ago");
  EXPECT_EQ(FleetWords(Between("7d", "1d")), "that ended between 7d and 1d ago");
  FleetJobs jobs = Between("all", "");
  jobs.name = "a\x1b[1m";
  jobs.user = "ada";
  jobs.host = "gpu-1";
  jobs.tags = {"x", "y"};
  EXPECT_EQ(FleetWords(jobs),
            "named a?[1m, of user ada, on host gpu-1, tagged x, tagged y");
  jobs.since = "30d";
  EXPECT_THAT(FleetWords(jobs), HasSubstr("tagged y, that ran in the last 30d"));
}

}  // namespace
}  // namespace lull
