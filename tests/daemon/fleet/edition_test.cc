#include "daemon/fleet/edition.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace lull::fleet {
namespace {

EditionOf OfJob() {
  EditionOf edition;
  edition.key = {Day{20'000}, "0123456789abcdef0123456789abcdef", 1, 77};
  edition.run = "first";
  edition.live = true;
  edition.stored_ns = 5;
  return edition;
}

void AddGap(v1::GapCause cause, const std::string& file, int line, uint64_t total_ns,
            Answers* answers) {
  v1::GapRow* row = answers->lines.mutable_gaps()->add_gaps();
  row->set_cause(cause);
  row->mutable_culprit()->set_file(file);
  row->mutable_culprit()->set_line(line);
  row->set_count(1);
  row->set_total_ns(total_ns);
  row->set_max_ns(total_ns);
}

TEST(Edition, AddsGapsUpByTheLineThatIsToBlame) {
  Answers answers;
  AddGap(v1::GAP_CAUSE_GC, "a.py", 1, 10, &answers);  // between other lines each
  AddGap(v1::GAP_CAUSE_GC, "a.py", 1, 30, &answers);
  AddGap(v1::GAP_CAUSE_SYNC, "a.py", 1, 5, &answers);
  Editions editions;
  AddEdition(OfJob(), answers, &editions);
  ASSERT_EQ(editions.lines.size(), 2U);
  EXPECT_EQ(editions.lines[0].cause, "gc");
  EXPECT_EQ(editions.lines[0].count, 2U);
  EXPECT_EQ(editions.lines[0].total_ns, 40U);
  EXPECT_EQ(editions.lines[0].max_ns, 30U);
  EXPECT_EQ(editions.lines[1].cause, "sync");
  EXPECT_EQ(editions.lines[1].version, 77U);
  EXPECT_EQ(editions.lines[1].slot, 1U);
  ASSERT_EQ(editions.jobs.size(), 1U);
  EXPECT_EQ(editions.jobs[0].run, "first");
  EXPECT_EQ(editions.jobs[0].live, 1);
}

void AddProcess(uint64_t duration_ns, uint64_t before_tracing_ns,
                uint32_t traced_devices, query::RankTotals* rank) {
  v1::ProcessRow* row = rank->reply.add_processes();
  row->set_pid(1);  // of all: programs that became others
  row->set_duration_ns(duration_ns);
  rank->traced_devices.push_back(traced_devices);
  rank->before_tracing_ns.push_back(before_tracing_ns);
}

// One after the other, beside each other, on two devices, without any: each for itself.
TEST(Edition, AddsUpHowLongProcessesHadDevicesThatWereTraced) {
  Answers answers;
  query::RankTotals* first = &answers.totals.ranks.emplace_back();
  AddProcess(100, 0, 1, first);
  AddProcess(10, 4, 2, first);    // four of them before it used its devices
  AddProcess(20, 30, 1, first);   // no part of it is negative
  AddProcess(5000, 0, 0, first);  // a worker without a device
  first->reply.mutable_processes(0)->set_recorded_ns(60);  // it slept in between
  AddProcess(1000, 0, 0, &answers.totals.ranks.emplace_back());
  Editions editions;
  AddEdition(OfJob(), answers, &editions);
  EXPECT_EQ(editions.jobs[0].gpu_ns, 60U + 2 * 6U);
  // A device is held in steps that are not recorded, too.
  v1::ProcessRow* process = answers.totals.ranks[0].reply.mutable_processes(0);
  process->set_recorded_ns(20);
  process->set_rested_ns(40);
  answers.totals.job.set_steps_sampled(true);
  EXPECT_EQ(editions.jobs[0].steps_sampled, 0u);
  Editions sampled;
  AddEdition(OfJob(), answers, &sampled);
  EXPECT_EQ(sampled.jobs[0].steps_sampled, 1u);
  EXPECT_EQ(sampled.jobs[0].gpu_ns, 60U + 2 * 6U);
}

TEST(Edition, LinesBeyondTheMostAreOneRowOfTheirCause) {
  Answers answers;
  uint64_t sum_ns = 0;
  for (size_t line = 0; line < 2 * kMostLines; ++line) {
    AddGap(line % 2 == 0 ? v1::GAP_CAUSE_GC : v1::GAP_CAUSE_SYNC, "a.py",
           static_cast<int>(line), 1 + line, &answers);
    sum_ns += 1 + line;
  }
  AddGap(v1::GAP_CAUSE_GC, "", 0, 1'000'000, &answers);  // of no line from the start
  sum_ns += 1'000'000;
  Editions editions;
  AddEdition(OfJob(), answers, &editions);
  EXPECT_LE(editions.lines.size(), kMostLines + 2);
  std::set<std::tuple<std::string, std::string, int32_t>> keys;
  uint64_t told_ns = 0, without_line_ns = 0;
  for (const LineRow& row : editions.lines) {
    EXPECT_TRUE(keys.insert({row.cause, row.file, row.line}).second);
    told_ns += row.total_ns;
    if (row.file.empty()) {
      without_line_ns += row.total_ns;
    } else {
      EXPECT_GT(row.total_ns, kMostLines);  // the larger half
    }
  }
  EXPECT_EQ(told_ns, sum_ns);
  EXPECT_GT(without_line_ns, 1'000'000U);
}

TEST(Edition, RanksAndWhyTheyWereLate) {
  Answers answers;
  for (int rank : {0, 1}) {
    query::RankTotals& one = answers.totals.ranks.emplace_back();
    one.rank = rank;
    one.steps.count = 3;
    one.reply.mutable_gpu()->set_idle_ns(7);
    v1::CauseRow* cause = one.reply.mutable_gaps()->add_causes();
    cause->set_cause(v1::GAP_CAUSE_DATA_WAIT);
    cause->set_total_ns(7);
    v1::ProcessRow* process = one.reply.add_processes();
    process->set_duration_ns(100);
    process->set_recorded_ns(60);
    process->set_rested_ns(30);
    process->set_gc_ns(4);
  }
  answers.totals.job.set_host("gpu7");
  answers.totals.ranks_left_out = 2;
  answers.ranks.emplace();
  v1::RankRow* late = answers.ranks->add_ranks();
  late->set_rank(1);
  late->set_host("gpu7");
  v1::LateCause* why = late->add_culprits();
  why->set_cause("sleep");
  why->mutable_site()->set_file("ddp.py");
  why->mutable_site()->set_line(8);
  why->set_steps(20);
  why->set_cost_ns(1000);
  Editions editions;
  AddEdition(OfJob(), answers, &editions);
  ASSERT_EQ(editions.ranks.size(), 2U);
  EXPECT_EQ(editions.ranks[1].rank, 1);
  EXPECT_EQ(editions.ranks[1].host, "gpu7");
  EXPECT_EQ(editions.ranks[1].recorded_ns, 60U);
  EXPECT_EQ(editions.ranks[1].rested_ns, 30U);
  EXPECT_EQ(editions.ranks[1].gc_ns, 4U);
  ASSERT_EQ(editions.rank_causes.size(), 2U);
  EXPECT_EQ(editions.rank_causes[1].cause, "data");
  EXPECT_EQ(editions.rank_causes[1].rank, 1);
  ASSERT_EQ(editions.late.size(), 1U);
  EXPECT_EQ(editions.late[0].line, 8);
  EXPECT_EQ(editions.late[0].host, "gpu7");
  EXPECT_EQ(editions.late[0].steps, 20U);
  EXPECT_EQ(editions.late[0].cost_ns, 1000U);
  EXPECT_EQ(editions.jobs[0].ranks, 4U);
  EXPECT_EQ(editions.jobs[0].ranks_left_out, 2U);
  EXPECT_EQ(editions.jobs[0].steps, 6U);
  EXPECT_FALSE(editions.jobs[0].exit_status);
  EXPECT_EQ(editions.size(), 6U);
}

}  // namespace
}  // namespace lull::fleet
