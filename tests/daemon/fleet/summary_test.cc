#include "daemon/fleet/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/fleet/clickhouse_fleet.h"

namespace lull::fleet {
namespace {

// A job with rows of every table that are anything, but whose keys come once.
Editions RandomJob(const std::string& id, std::mt19937_64& random) {
  auto below = [&random](uint64_t bound) { return random() % bound; };
  Editions rows;
  JobRow& job = rows.jobs.emplace_back();
  job.job = id;
  job.name = absl::StrCat("job ", below(3));
  job.host = absl::StrCat("host", below(4));
  job.user = absl::StrCat("user", below(2));
  job.collector = absl::StrCat("collector", below(2));
  for (const char* tag : {"a", "b"}) {
    if (below(2) == 0) job.tags.emplace_back(tag);
  }
  job.start_unix_ns = 1000 + below(1000);
  job.duration_ns = below(1'000'000'000'000);
  job.live = static_cast<uint8_t>(below(2));
  job.ranks = static_cast<uint32_t>(below(3));
  job.traced_ns = below(3) * 1'000'000;
  job.gpu_ns = below(1'000'000'000);
  job.busy_ns = below(1'000'000);
  job.idle_ns = below(4);  // the same for many
  job.explained_ns = below(1'000'000);
  job.sync_blocked_ns = below(1'000'000);
  job.events_lost = below(2);
  for (const char* cause : {"gc", "data", "sync"}) {
    if (below(3) == 0) continue;
    CauseRow& row = rows.causes.emplace_back();
    row.job = id;
    row.cause = cause;
    row.total_ns = below(3);
  }
  for (int line = 0; line < 5; ++line) {
    for (const char* api : {"", "cudaFree"}) {
      if (below(3) == 0) continue;
      LineRow& row = rows.lines.emplace_back();
      row.job = id;
      row.cause = "sync";
      row.file = "a.py";
      row.line = line;
      row.api = api;
      row.total_ns = below(4);
      row.max_ns = below(4);
    }
    LateRow& row = rows.late.emplace_back();
    row.job = id;
    row.rank = line;
    row.host = absl::StrCat("host", below(2));
    row.cause = "sleep";
    row.cost_ns = below(3);
  }
  return rows;
}

// Of jobs that end on these days since 1970: (key, jobs).
std::vector<std::pair<std::string, uint64_t>> GroupsOfDays(
    v1::FleetGroup by, const std::vector<uint64_t>& days) {
  Summary summary;
  Editions editions;
  for (uint64_t day : days) {
    JobRow& job = editions.jobs.emplace_back();
    job.job = absl::StrCat("id", editions.jobs.size());
    job.start_unix_ns = day * 86'400'000'000'000;
    job.duration_ns = 86'399'999'999'999;
  }
  summary.Add(editions);
  v1::FleetRequest request;
  request.set_group_by(by);
  v1::FleetReply reply;
  EXPECT_TRUE(summary.Fill(request, &reply).ok());
  std::vector<std::pair<std::string, uint64_t>> groups;
  for (const v1::FleetGroupRow& row : reply.groups()) {
    groups.emplace_back(row.key(), row.jobs());
  }
  return groups;
}

using GroupRows = std::vector<std::pair<std::string, uint64_t>>;

TEST(Groups, OfDaysHaveTheLatestFirst) {
  // 28 and 29 November 2026, a Saturday and a Sunday, and the Monday after.
  EXPECT_EQ(GroupsOfDays(v1::FLEET_GROUP_DAY, {20785, 20787, 20786, 20785}),
            (GroupRows{{"2026-11-30", 1}, {"2026-11-29", 1}, {"2026-11-28", 2}}));
}

TEST(Groups, OfWeeksBeginOnMondays) {
  EXPECT_EQ(GroupsOfDays(v1::FLEET_GROUP_WEEK, {20785, 20787, 20786, 20779}),
            (GroupRows{{"2026-11-30", 1}, {"2026-11-23", 2}, {"2026-11-16", 1}}));
}

TEST(Groups, OfTimesThatCannotBeAreTheFirstAndTheLastThereAre) {
  EXPECT_EQ(GroupsOfDays(v1::FLEET_GROUP_DAY, {0, 100'000}),
            (GroupRows{{"2105-12-31", 1}, {"1970-01-05", 1}}));
  EXPECT_EQ(GroupsOfDays(v1::FLEET_GROUP_WEEK, {0}), (GroupRows{{"1970-01-05", 1}}));
}

class Sums : public ::testing::TestWithParam<uint64_t> {};

// The lists against loops over all rows, one for each entry.
TEST_P(Sums, AreThoseOfAllRows) {
  std::mt19937_64 random(GetParam());
  std::vector<Editions> all;
  Summary summary;
  for (int i = 0; i < 30; ++i) {
    all.push_back(RandomJob(absl::StrCat("id", i), random));
    summary.Add(all.back());
  }
  const uint32_t limit = 1 + random() % 40;
  v1::FleetRequest request;
  request.set_limit(limit);
  request.set_group_by(v1::FLEET_GROUP_HOST);
  v1::FleetReply reply;
  ASSERT_TRUE(summary.Fill(request, &reply).ok());
  std::vector<JobRow> jobs;
  std::vector<CauseRow> causes;
  std::vector<LineRow> lines;
  std::vector<LateRow> late;
  for (const Editions& one : all) {
    jobs.insert(jobs.end(), one.jobs.begin(), one.jobs.end());
    causes.insert(causes.end(), one.causes.begin(), one.causes.end());
    lines.insert(lines.end(), one.lines.begin(), one.lines.end());
    late.insert(late.end(), one.late.begin(), one.late.end());
  }

  std::map<std::string, double> weights;
  const auto estimated_us = [&](uint64_t ns, const std::string& job) {
    return std::floor(static_cast<double>(ns) * weights[job] / 1e3);
  };
  uint64_t idle = 0, gpu_ms = 0, live = 0, cost = 0;
  double estimated = 0;
  for (const JobRow& job : jobs) {
    weights[job.job] = job.traced_ns == 0
                           ? 1
                           : std::max(1.0, static_cast<double>(job.gpu_ns) /
                                               static_cast<double>(job.traced_ns));
    estimated += estimated_us(job.idle_ns, job.job);
    idle += job.idle_ns;
    live += job.live;
    gpu_ms += job.gpu_ns / 1'000'000;
  }
  for (const LateRow& row : late) cost += row.cost_ns;
  EXPECT_EQ(reply.totals().jobs(), 30U);
  EXPECT_EQ(reply.totals().idle_ns(), idle);
  EXPECT_EQ(reply.totals().live_jobs(), live);
  EXPECT_EQ(reply.totals().gpu_time_ms(), gpu_ms);
  EXPECT_EQ(reply.totals().late_cost_ns(), cost);
  EXPECT_EQ(reply.totals().estimated_ms(), estimated / 1e3);

  for (const v1::FleetCause& row : reply.causes()) {
    uint64_t total = 0, count = 0;
    double us = 0;
    for (const CauseRow& one : causes) {
      if (one.cause != row.cause()) continue;
      us += estimated_us(one.total_ns, one.job);
      total += one.total_ns;
      count += one.total_ns > 0;
    }
    EXPECT_EQ(row.total_ns(), total);
    EXPECT_EQ(row.jobs(), count);
    EXPECT_EQ(row.estimated_ms(), us / 1e3);
  }
  double before = 1e18;
  std::set<std::string> keys;
  for (const v1::FleetLine& row : reply.lines()) {
    uint64_t total = 0, most = 0, count = 0;
    double us = 0;
    for (const LineRow& one : lines) {
      if (one.line != row.line() || one.api != row.api() || one.total_ns == 0) continue;
      total += one.total_ns;
      us += estimated_us(one.total_ns, one.job);
      most = std::max(most, one.max_ns);
      ++count;
    }
    EXPECT_EQ(row.total_ns(), total);
    EXPECT_EQ(row.max_ns(), most);
    EXPECT_EQ(row.jobs(), count);
    EXPECT_EQ(row.estimated_ms(), us / 1e3);
    EXPECT_LE(row.estimated_ms(), before);
    before = row.estimated_ms();
    keys.insert(absl::StrCat(row.line(), row.api()));
  }
  EXPECT_EQ(keys.size(), static_cast<size_t>(reply.lines_size()));
  EXPECT_EQ(reply.lines_size() + reply.lines_left_out(), 10U);
  EXPECT_EQ(static_cast<uint32_t>(reply.lines_size()), std::min(limit, 10U));

  EXPECT_EQ(static_cast<uint32_t>(reply.jobs_size()), std::min(limit, 30U));
  EXPECT_EQ(reply.jobs_size() + reply.jobs_left_out(), 30U);
  for (int i = 1; i < reply.jobs_size(); ++i) {
    const v1::FleetJob& one = reply.jobs(i - 1);
    const v1::FleetJob& next = reply.jobs(i);
    EXPECT_TRUE(one.estimated_ms() > next.estimated_ms() ||
                (one.estimated_ms() == next.estimated_ms() && one.id() < next.id()));
  }
  for (const v1::FleetJob& row : reply.jobs()) {
    uint64_t most = 0;
    for (const CauseRow& one : causes) {
      if (one.job == row.id()) most = std::max(most, one.total_ns);
    }
    EXPECT_EQ(row.cause_ns(), most);
    EXPECT_EQ(row.cause().empty(), most == 0);
  }
  uint64_t of_groups = 0;
  for (const v1::FleetGroupRow& row : reply.groups()) {
    uint64_t of_host = 0, group_idle = 0;
    for (const JobRow& job : jobs) {
      if (job.host != row.key()) continue;
      ++of_host;
      group_idle += job.idle_ns;
    }
    EXPECT_EQ(row.jobs(), of_host);
    EXPECT_EQ(row.idle_ns(), group_idle);
    of_groups += of_host;
  }
  EXPECT_TRUE(of_groups == 30 || reply.groups_left_out() > 0);
  for (const v1::FleetLate& row : reply.late()) {
    uint64_t total = 0;
    std::set<std::string> of;
    for (const LateRow& one : late) {
      if (one.host != row.host() || one.cost_ns == 0) continue;
      total += one.cost_ns;
      of.insert(one.job);
    }
    EXPECT_EQ(row.cost_ns(), total);
    EXPECT_EQ(row.jobs(), of.size());
  }
}
INSTANTIATE_TEST_SUITE_P(Seed, Sums, ::testing::Range(uint64_t{1}, uint64_t{9}));

TEST(Summary, OfTheSameTimeGoesByName) {
  Editions rows;
  for (const char* file : {"b.py", "a.py", "c.py"}) {
    LineRow& row = rows.lines.emplace_back();
    row.file = file;
    row.total_ns = 5;
  }
  Summary summary;
  summary.Add(rows);
  v1::FleetReply reply;
  v1::FleetRequest request;
  request.set_limit(2);
  ASSERT_TRUE(summary.Fill(request, &reply).ok());
  ASSERT_EQ(reply.lines_size(), 2);
  EXPECT_EQ(reply.lines(0).file(), "a.py");
  EXPECT_EQ(reply.lines(1).file(), "b.py");
  EXPECT_EQ(reply.lines_left_out(), 1U);
}

TEST(Summary, EstimatesByWhatWasNotTraced) {
  Editions rows;
  JobRow& job = rows.jobs.emplace_back();
  job.job = "a";
  job.gpu_ns = 8'000'000'000;
  job.traced_ns = 800'000'000;
  job.idle_ns = 200'000'000;
  CauseRow& cause = rows.causes.emplace_back();
  cause.job = "a";
  cause.cause = "gc";
  cause.total_ns = 200'000'000;
  Summary summary;
  summary.Add(rows);
  v1::FleetReply reply;
  ASSERT_TRUE(summary.Fill({}, &reply).ok());
  EXPECT_EQ(reply.totals().estimated_ms(), 2000);
  EXPECT_EQ(reply.causes(0).estimated_ms(), 2000);
  EXPECT_EQ(reply.jobs(0).estimated_ms(), 2000);
  EXPECT_EQ(reply.groups(0).estimated_ms(), 2000);
}

TEST(Summary, NeverEstimatesLessThanItSaw) {
  JobRow job;
  job.gpu_ns = 39;
  job.traced_ns = 40;
  EXPECT_EQ(WeightOf(job), 1);
  job.traced_ns = 0;
  EXPECT_EQ(WeightOf(job), 1);
}

TEST(Summary, RefusesSumsThatDoNotFit) {
  for (auto field : {&JobRow::traced_ns, &JobRow::sync_blocked_ns}) {
    Summary summary;
    for (const char* id : {"a", "b", "c"}) {
      Editions rows;
      JobRow& job = rows.jobs.emplace_back();
      job.job = id;
      job.*field = 9'000'000'000'000'000'000;
      summary.Add(rows);
    }
    v1::FleetReply reply;
    EXPECT_TRUE(absl::IsOutOfRange(summary.Fill({}, &reply)));
  }
}

TEST(Request, IsOfJobsThatHaveAllOfIt) {
  JobRow job;
  job.name = "resnet";
  job.user = "ada";
  job.host = "gpu-1";
  job.tags = {"a", "b"};
  job.start_unix_ns = 60;
  job.duration_ns = 40;
  v1::FleetRequest request;
  EXPECT_TRUE(IsAskedFor(request, job));
  request.set_since_unix_ns(100);
  request.set_until_unix_ns(101);
  request.set_name("resnet");
  request.set_user("ada");
  request.set_host("gpu-1");
  request.add_tags("b");
  request.add_tags("a");
  EXPECT_TRUE(IsAskedFor(request, job));
  const auto without = [&](auto change) {
    v1::FleetRequest other = request;
    change(other);
    return IsAskedFor(other, job);
  };
  EXPECT_FALSE(without([](auto& one) { one.set_since_unix_ns(101); }));
  EXPECT_FALSE(without([](auto& one) { one.set_until_unix_ns(100); }));
  EXPECT_FALSE(without([](auto& one) { one.set_name("res"); }));
  EXPECT_FALSE(without([](auto& one) { one.set_user("bob"); }));
  EXPECT_FALSE(without([](auto& one) { one.set_host("gpu-2"); }));
  EXPECT_FALSE(without([](auto& one) { one.add_tags("c"); }));
}

TEST(Request, HasNoMoreRowsThanAReplyCanHold) {
  v1::FleetRequest request;
  EXPECT_EQ(LimitOf(request), kMostFleetRows);
  request.set_limit(7);
  EXPECT_EQ(LimitOf(request), 7U);
  request.set_limit(UINT32_MAX);
  EXPECT_EQ(LimitOf(request), kMostFleetRows);
}

TEST(Quoted, LeavesNoCharacterToSql) {
  EXPECT_EQ(Quoted("gpu17"), "'gpu17'");
  EXPECT_EQ(Quoted("a' OR 1=1 --"), "'a\\x27\\x20OR\\x201\\x3d1\\x20\\x2d\\x2d'");
  EXPECT_EQ(Quoted("\\"), "'\\x5c'");
  EXPECT_EQ(Quoted("\xc3\xa4"), "'\\xc3\\xa4'");
}

}  // namespace
}  // namespace lull::fleet
