// Totals by rank are what reports say, rank by rank, also while the job goes on.
#include "daemon/query/run_totals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/event_views.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/gpu_job.h"
#include "tests/daemon/query/memory_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr size_t kMany = 1000;

query::RunTotals Totals(Pipeline& pipeline, size_t most_ranks = kMany) {
  auto totals = query::TotalsOfRun(
      pipeline.store(), [](const std::string&) { return true; }, MakeJobId(1),
      most_ranks);
  EXPECT_TRUE(totals.ok()) << totals.status();
  return totals.ok() ? *std::move(totals) : query::RunTotals();
}

// Two ranks with a device each, their events by the order in which they are committed.
class TwoRanks {
 public:
  explicit TwoRanks(std::mt19937_64& random, bool one_pid = false) : one_pid_(one_pid) {
    for (uint64_t process : {1, 2}) {
      const auto events = MakeGpuJob(process, GpuJobOptions(), random);
      events_.insert(events_.end(), events.begin(), events.end());
    }
    std::stable_sort(events_.begin(), events_.end(), [](const auto& a, const auto& b) {
      return a.commit_ns < b.commit_ns;
    });
  }

  // What is committed before `as_of_ns`. False: that was all of it.
  bool Feed(Pipeline& pipeline, uint64_t as_of_ns) {
    lull::v1::Batch batch;
    batch.set_sequence(++sequence_);
    const bool first = sequence_ == 1;
    for (uint64_t process : {1, 2}) {
      if (!first) continue;
      const auto rank = static_cast<uint32_t>(process) - 1;
      *batch.add_processes() =
          one_pid_ ? MakeProcess(process, 101, 0)
                   : MakeProcess(process, 101 + rank, static_cast<int32_t>(rank));
      AddStacks(batch, process);
      AddGpu(batch, process);
    }
    std::map<std::pair<uint64_t, uint32_t>, std::vector<TestEvent>> rings;
    for (; at_ < events_.size() && events_[at_].commit_ns < as_of_ns; ++at_) {
      rings[{events_[at_].process, events_[at_].ring}].push_back(events_[at_].event);
    }
    for (const auto& [key, run] : rings) {
      AddRun(batch, key.first, key.second, positions_[key], run);
      positions_[key] += run.size();
    }
    for (uint64_t process : {1, 2}) {
      AddCounters(batch, process, 0, positions_[{process, 0u}], as_of_ns);
    }
    pipeline.Apply(batch);
    pipeline.Commit();
    return at_ < events_.size();
  }

  void End(Pipeline& pipeline, uint64_t end_ns) {
    lull::v1::Batch last;
    last.set_sequence(++sequence_);
    for (uint64_t process : {1, 2}) {
      auto* end = last.add_process_ends();
      end->set_process_key(process);
      end->set_end_ns(end_ns);
    }
    last.mutable_job_end()->set_end_ns(end_ns);
    pipeline.Apply(last);
    pipeline.Commit();
  }

 private:
  const bool one_pid_;
  std::vector<GpuEvent> events_;
  size_t at_ = 0;
  uint64_t sequence_ = 0;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> positions_;
};

void ExpectSameAsReport(Pipeline& pipeline, const query::RankTotals& rank) {
  lull::v1::ReportRequest request;
  request.set_rank(rank.rank);
  request.set_phase(lull::v1::PHASE_ALL);
  lull::v1::ReportReply report = pipeline.Report(request);
  report.mutable_gpu()->clear_spans();
  report.mutable_gpu()->clear_explained_ns();
  EXPECT_EQ(rank.reply.gpu().DebugString(), report.gpu().DebugString());
  auto causes = [](const lull::v1::Gaps& gaps) {
    std::string text;
    for (const auto& row : gaps.causes()) text += row.DebugString();
    return text;
  };
  EXPECT_EQ(causes(rank.reply.gaps()), causes(report.gaps()));
  EXPECT_EQ(rank.reply.memory().DebugString(), report.memory().DebugString());
  EXPECT_EQ(rank.reply.launches(), report.launches());
  ASSERT_EQ(rank.reply.processes_size(), report.processes_size());
  for (int i = 0; i < report.processes_size(); ++i) {
    EXPECT_EQ(rank.reply.processes(i).DebugString(), report.processes(i).DebugString());
  }
  lull::v1::ReportRequest all_waits = request;
  all_waits.add_sections(lull::v1::SECTION_WAITS);
  std::map<std::string, std::pair<uint64_t, uint64_t>> want, got;
  const lull::v1::ReportReply waits = pipeline.Report(all_waits);
  for (const auto& row : waits.waits().host_waits()) {
    want[row.kind()].first += row.count();
    want[row.kind()].second += row.total_ns();
  }
  for (const auto& [kind, cell] : rank.waits) {
    got[aggregate::WaitKindName(kind)] = {cell.count, cell.total_ns};
  }
  EXPECT_EQ(got, want);
}

TEST(RunTotals, AreWhatReportsSayOfEachRankAndTracedAndIdleTimeOnlyGrow) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    lull::v1::Hello hello = MakeHello(MakeJobId(1));
    hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
    Pipeline pipeline(hello);
    TwoRanks job(random);
    uint64_t as_of_ns = kJobStartNs;
    std::map<std::pair<int32_t, int>, uint64_t> before;  // by rank and cause
    bool more = true;
    while (more) {
      as_of_ns += 300 * kMs;
      more = job.Feed(pipeline, as_of_ns);
      if (!more) job.End(pipeline, as_of_ns);
      const query::RunTotals totals = Totals(pipeline);
      ASSERT_EQ(totals.ranks.size(), 2u);
      EXPECT_EQ(totals.ranks_left_out, 0u);
      for (const query::RankTotals& rank : totals.ranks) {
        uint64_t& traced = before[{rank.rank, -1}];
        EXPECT_GE(rank.reply.gpu().traced_ns(), traced);
        traced = rank.reply.gpu().traced_ns();
        for (const auto& row : rank.reply.gaps().causes()) {
          uint64_t& idle = before[{rank.rank, row.cause()}];
          EXPECT_GE(row.total_ns(), idle);
          idle = row.total_ns();
        }
      }
    }
    const query::RunTotals totals = Totals(pipeline);
    EXPECT_TRUE(totals.job.ended());
    EXPECT_GT(totals.losses.events_stored(), 0u);
    EXPECT_EQ(totals.ranks[0].rank, 0);
    EXPECT_EQ(totals.ranks[1].rank, 1);
    for (const query::RankTotals& rank : totals.ranks) {
      EXPECT_GT(rank.reply.gpu().traced_ns(), 0u);
      ExpectSameAsReport(pipeline, rank);
    }
  }
}

// One program that became another one by execve(), say.
TEST(RunTotals, KnowTheDevicesOfEachProcessThoughTheyHaveOnePid) {
  std::mt19937_64 random(1);
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
  Pipeline pipeline(hello);
  TwoRanks job(random, /*one_pid=*/true);
  uint64_t as_of_ns = kJobStartNs + 300 * kMs;
  while (job.Feed(pipeline, as_of_ns)) as_of_ns += 300 * kMs;
  job.End(pipeline, as_of_ns);
  const query::RunTotals totals = Totals(pipeline);
  ASSERT_EQ(totals.ranks.size(), 1u);
  ASSERT_EQ(totals.ranks[0].reply.processes_size(), 2);
  const auto& one = totals.ranks[0].reply.processes(0);
  const auto& two = totals.ranks[0].reply.processes(1);
  EXPECT_EQ(one.pid(), two.pid());
  ASSERT_EQ(totals.ranks[0].reply.devices_size(), 2);
  EXPECT_EQ(totals.ranks[0].traced_devices, (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(totals.ranks[0].before_tracing_ns.size(), 2u);
}

TestEvent Tracing(uint64_t at_ms, lull::v1::TracingState state) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_GPU_TRACING;
  event.start_ns = kJobStartNs + at_ms * kMs;
  TracingView{event}.set_state(static_cast<uint64_t>(state));
  return event;
}

// The import of PyTorch, say.
TEST(RunTotals, KnowHowLongAProcessRecordedBeforeAnythingWasTraced) {
  for (const bool slept : {false, true}) {
    Pipeline pipeline(MakeHello(MakeJobId(1)));
    lull::v1::Batch batch;
    batch.set_sequence(1);
    *batch.add_processes() = MakeProcess(1, 101, 0);
    AddStacks(batch, 1);
    AddGpu(batch, 1);
    AddRun(batch, 1, 0, 0,
           {Tracing(10, lull::v1::TRACING_STATE_OFF),
            Tracing(700, lull::v1::TRACING_STATE_ACTIVE),
            Tracing(900, lull::v1::TRACING_STATE_OFF),
            Tracing(1000, lull::v1::TRACING_STATE_ACTIVE)});
    AddCounters(batch, 1, 0, 4, kJobStartNs + 2000 * kMs);
    // It recorded from 400 ms on.
    if (slept) {
      lull::v1::ArmedStretch* stretch = batch.add_stretches();
      stretch->set_number(1);
      stretch->set_start_ns(kJobStartNs + 400 * kMs);
    }
    pipeline.Apply(batch);
    pipeline.Commit();
    const query::RunTotals totals = Totals(pipeline);
    ASSERT_EQ(totals.ranks.size(), 1u);
    EXPECT_EQ(totals.ranks[0].before_tracing_ns,
              std::vector<uint64_t>{(slept ? 300 : 700) * kMs});
  }
}

TEST(RunTotals, CountNoTimeOfADeviceOfWhichNothingIsKnown) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 0);
  AddGpu(batch, 1);
  AddCounters(batch, 1, 0, 0, kJobStartNs + kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  const query::RunTotals totals = Totals(pipeline);
  ASSERT_EQ(totals.ranks.size(), 1u);
  EXPECT_GT(totals.ranks[0].reply.devices_size(), 0);
  EXPECT_EQ(totals.ranks[0].traced_devices, std::vector<uint32_t>{0});
  EXPECT_EQ(totals.ranks[0].before_tracing_ns, std::vector<uint64_t>{0});
}

TEST(RunTotals, KnowTheTimeOfAllStepsThatAProgramMarks) {
  constexpr uint64_t kSteps = 6000;  // more than are kept
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 0);
  AddStacks(batch, 1);
  std::vector<TestEvent> events;
  uint64_t at_ns = kJobStartNs;
  for (uint64_t number = 1; number <= kSteps; ++number) {
    const uint64_t end_ns = at_ns + kMs;
    events.push_back(Step(number == 1 ? end_ns : at_ns, end_ns, number));
    at_ns = end_ns;
  }
  AddRun(batch, 1, 0, 0, events);
  AddCounters(batch, 1, 0, kSteps, at_ns + 5000 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  const query::RunTotals totals = Totals(pipeline);
  ASSERT_EQ(totals.ranks.size(), 1u);
  EXPECT_TRUE(totals.ranks[0].steps.timed);
  EXPECT_EQ(totals.ranks[0].steps.count, kSteps);
  EXPECT_EQ(totals.ranks[0].steps.total_ns, (kSteps - 1) * kMs);
}

TEST(RunTotals, ReadNoMoreRanksThanTheyMayAndSayHowManyAreLeft) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  for (uint64_t key = 1; key <= 5; ++key) {
    *batch.add_processes() = MakeProcess(key, 100 + static_cast<uint32_t>(key),
                                         static_cast<int32_t>(key) - 2);
    AddCounters(batch, key, 0, 0, kJobStartNs + kMs);
  }
  pipeline.Apply(batch);
  pipeline.Commit();
  const query::RunTotals totals = Totals(pipeline, 2);
  ASSERT_EQ(totals.ranks.size(), 2u);
  EXPECT_EQ(totals.ranks[0].rank, -1);
  EXPECT_EQ(totals.ranks[1].rank, 0);
  EXPECT_EQ(totals.ranks_left_out, 3u);
  EXPECT_EQ(Totals(pipeline, 0).ranks_left_out, 5u);
}

// A relay may say anything for "no rank".
TEST(RunTotals, PutProcessesWithoutARankTogether) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  for (uint64_t key : {1, 2, 3}) {
    *batch.add_processes() = MakeProcess(key, 100 + static_cast<uint32_t>(key),
                                         1 - static_cast<int32_t>(key));
  }
  pipeline.Apply(batch);
  pipeline.Commit();
  const query::RunTotals totals = Totals(pipeline);
  ASSERT_EQ(totals.ranks.size(), 2u);
  EXPECT_EQ(totals.ranks[0].rank, -1);
  EXPECT_EQ(totals.ranks[0].reply.processes_size(), 2);
  EXPECT_EQ(totals.ranks[1].rank, 0);
}

TEST(RunTotals, AreOfNoJobThatIsNotThere) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Commit();
  auto totals = query::TotalsOfRun(
      pipeline.store(), [](const std::string&) { return true; },
      MakeJobId(1).substr(0, 8), kMany);
  EXPECT_TRUE(absl::IsNotFound(totals.status())) << totals.status();
}

}  // namespace
}  // namespace lull::test
