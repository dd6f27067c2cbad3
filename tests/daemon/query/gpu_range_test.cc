// Every number of the GPU reports equals that of a model, for any range, grouping and
// process, with duplicates, and with a collector that ends in the middle of its work.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "daemon/query/job_lookup.h"
#include "daemon/query/timeline.h"
#include "tests/daemon/query/gpu_job.h"
#include "tests/daemon/query/gpu_model.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"
#include "tests/trials.h"

namespace lull::test {
namespace {

lull::v1::Hello GpuHello() {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
  hello.mutable_job()->set_gpu_schedule("wait=1,warmup=1,active=2");
  return hello;
}

// Sends what was committed, batch by batch, as a relay does.
class Feeder {
 public:
  Feeder(Pipeline& pipeline, std::mt19937_64& random, bool restarts)
      : pipeline_(pipeline), random_(random), restarts_(restarts) {}

  void Feed(const std::vector<GpuEvent>& events) {
    uint64_t as_of = kJobStartNs;
    for (size_t at = 0; at < events.size() || sent_.empty();) {
      as_of += 20 * kMs + random_() % (200 * kMs);
      size_t end = at;
      while (end < events.size() && events[end].commit_ns < as_of) ++end;
      Send(MakeBatch({events.begin() + static_cast<ptrdiff_t>(at),
                      events.begin() + static_cast<ptrdiff_t>(end)},
                     as_of));
      at = end;
      if (restarts_ && random_() % 30 == 0) RestartAndResend();
    }
    lull::v1::Batch last;
    last.set_sequence(sent_.size() + 1);
    last.add_process_ends()->set_process_key(1);
    last.mutable_process_ends(0)->set_end_ns(as_of);
    last.mutable_job_end()->set_end_ns(as_of);
    Send(last);
    pipeline_.Commit();
  }

 private:
  void Send(const lull::v1::Batch& batch) {
    pipeline_.Apply(batch);
    if (random_() % 6 == 0) pipeline_.Apply(batch);
    sent_.push_back(batch);
    if (random_() % 3 != 0) return;
    pipeline_.Commit();
    committed_ = sent_.size();
  }

  void RestartAndResend() {
    pipeline_.Restart();
    size_t from = committed_ - std::min<size_t>(committed_, random_() % 3);
    for (size_t i = from; i < sent_.size(); ++i) pipeline_.Apply(sent_[i]);
  }

  lull::v1::Batch MakeBatch(const std::vector<GpuEvent>& events, uint64_t as_of_ns) {
    lull::v1::Batch batch;
    batch.set_sequence(sent_.size() + 1);
    for (uint64_t process : {1, 2}) {
      if (sent_.empty()) {
        *batch.add_processes() =
            MakeProcess(process, 100 + static_cast<uint32_t>(process), 0);
        AddStacks(batch, process);
        AddGpu(batch, process);
      }
      std::map<uint32_t, std::vector<TestEvent>> rings;
      for (const GpuEvent& e : events) {
        if (e.process == process) rings[e.ring].push_back(e.event);
      }
      for (auto& [ring, run] : rings) {
        uint64_t& position = positions_[{process, ring}];
        AddRun(batch, process, ring, position, run);
        position += run.size();
      }
      AddCounters(batch, process, 0, positions_[{process, 0u}], as_of_ns);
    }
    return batch;
  }

  Pipeline& pipeline_;
  std::mt19937_64& random_;
  const bool restarts_;
  std::vector<lull::v1::Batch> sent_;
  size_t committed_ = 0;
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> positions_;
};

void ExpectSame(const std::map<std::string, GpuRow>& got,
                const std::map<std::string, GpuRow>& want, const char* what) {
  for (const auto& [key, row] : want) {
    auto it = got.find(key);
    if (it == got.end()) {
      ADD_FAILURE() << what << ": no row " << key << ", expected " << row;
    } else {
      EXPECT_EQ(it->second, row) << what << ": " << key;
    }
  }
  for (const auto& [key, row] : got) {
    EXPECT_TRUE(want.contains(key)) << what << ": unexpected " << key << " " << row;
  }
}

void Compare(Pipeline& pipeline, const GpuModel& model, const GpuQuery& query) {
  lull::v1::ReportRequest request;
  request.set_group_by(query.by);
  if (query.process != 0) request.set_pid(100 + static_cast<uint32_t>(query.process));
  if (query.since != 0) request.set_since_ns(query.since);
  if (query.until != UINT64_MAX) request.set_until_ns(query.until);
  lull::v1::ReportReply reply = pipeline.Report(request);
  GpuReport got = FromReply(reply, query.by);
  GpuReport want = model.Report(query);
  EXPECT_EQ(got.traced_ns, want.traced_ns);
  EXPECT_EQ(got.idle_ns, want.idle_ns);
  // Shares of two causes of two processes, each rounded.
  EXPECT_NEAR(static_cast<double>(got.explained_ns),
              static_cast<double>(want.explained_ns), 10);
  ExpectSame(got.causes, want.causes, "causes");
  ExpectSame(got.gaps, want.gaps, "gaps");
  ExpectSame(got.doing, want.doing, "doing");
  ExpectSame(got.kernels, want.kernels, "kernels");
  ExpectSame(got.copies, want.copies, "copies");
  ExpectSame(got.syncs, want.syncs, "syncs");
  uint64_t causes = 0;
  for (const auto& row : reply.gaps().causes()) causes += row.total_ns();
  EXPECT_EQ(causes, reply.gpu().idle_ns()) << "causes sum to the idle time";
  EXPECT_EQ(reply.gpu().busy_ns() + reply.gpu().idle_ns(), reply.gpu().traced_ns());
  EXPECT_EQ(reply.losses().events_lost(), 0u);
  if (query.since == 0 && query.until == UINT64_MAX) {
    EXPECT_EQ(got.wasted_ns, want.wasted_ns);
  }
}

uint64_t Sum(const google::protobuf::RepeatedField<uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), uint64_t{0});
}

// The bands hold the report's own times: by cause, busy, traced, whatever was looked
// at.
void ExpectSameTimes(const lull::v1::Timeline& timeline,
                     const lull::v1::ReportReply& reply) {
  std::map<int, uint64_t> causes;
  uint64_t traced_ns = 0, busy_ns = 0;
  for (const auto& band : timeline.bands()) {
    for (const auto& row : band.causes()) causes[row.cause()] += Sum(row.idle_ns());
    traced_ns += Sum(band.traced_ns());
    busy_ns += Sum(band.busy_ns());
  }
  EXPECT_EQ(traced_ns, reply.gpu().traced_ns());
  EXPECT_EQ(busy_ns, reply.gpu().busy_ns());
  EXPECT_EQ(causes.size(), static_cast<size_t>(reply.gaps().causes_size()));
  for (const auto& row : reply.gaps().causes()) {
    EXPECT_EQ(causes[row.cause()], row.total_ns()) << row.cause();
  }
}

// `whole`: no range cuts a gap. Of one that is cut a report tells how long it was.
void ExpectSameGaps(const lull::v1::Timeline& timeline,
                    const lull::v1::ReportReply& reply, bool whole) {
  std::map<int, uint64_t> causes, longest;
  uint64_t gaps = 0;
  for (const auto& band : timeline.bands()) {
    ASSERT_EQ(band.gap_start_ns_size(), band.gap_duration_ns_size());
    ASSERT_EQ(band.gap_start_ns_size(), band.gap_kind_size());
    EXPECT_TRUE(std::is_sorted(band.gap_start_ns().begin(), band.gap_start_ns().end()));
    gaps += static_cast<uint64_t>(band.gap_kind_size());
    for (int i = 0; i < band.gap_kind_size(); ++i) {
      const int cause = timeline.kinds(static_cast<int>(band.gap_kind(i))).cause();
      causes[cause] += band.gap_duration_ns(i);
      longest[cause] = std::max(longest[cause], band.gap_duration_ns(i));
    }
  }
  EXPECT_EQ(gaps, timeline.gaps());
  EXPECT_EQ(timeline.left_out(), 0u);
  for (const auto& row : reply.gaps().causes()) {
    EXPECT_EQ(causes[row.cause()], row.total_ns()) << row.cause();
    EXPECT_LE(longest[row.cause()], row.max_ns()) << row.cause();
    if (whole) {
      EXPECT_EQ(longest[row.cause()], row.max_ns()) << row.cause();
    }
  }
}

// Its range alone counts.
void CompareTimeline(Pipeline& pipeline, const GpuQuery& query) {
  const bool whole = query.since == 0 && query.until == UINT64_MAX;
  lull::v1::ReportRequest request;
  request.set_phase(lull::v1::PHASE_ALL);
  if (query.since != 0) request.set_since_ns(query.since);
  if (query.until != UINT64_MAX) request.set_until_ns(query.until);
  request.add_details()->set_section(lull::v1::SECTION_TIMELINE);
  const lull::v1::ReportReply reply = pipeline.Report(request);
  ASSERT_EQ(reply.details_size(), 1);
  ExpectSameTimes(reply.details(0).timeline(), reply);
  ExpectSameGaps(reply.details(0).timeline(), reply, whole);

  // What an overview says does not depend on details.
  request.clear_details();
  lull::v1::ReportReply alone = reply;
  alone.clear_details();
  EXPECT_EQ(pipeline.Report(request).SerializeAsString(), alone.SerializeAsString());
}

// The same under bounds: the bins stay whole, and what is left out is counted.
void CompareBounded(Pipeline& pipeline, const query::TimelineBounds& bounds) {
  lull::v1::ReportRequest request;
  request.set_phase(lull::v1::PHASE_ALL);
  const lull::v1::ReportReply reply = pipeline.Report(request);
  query::View view;
  view.reader = pipeline.store().NewReader().value();
  view.job = query::FindJob(*view.reader, "").value();
  auto rows = view.reader->catalogue().All<storage::ProcessRow>(view.job.id);
  ASSERT_TRUE(rows.ok());
  for (const storage::ProcessRow& row : *rows) {
    auto sums = query::LoadSums(*view.reader, view.job, row, {});
    ASSERT_TRUE(sums.ok());
    view.processes.push_back(*std::move(sums));
  }
  view.names = std::make_unique<query::Names>(*view.reader, view.job.id);
  lull::v1::Timeline timeline;
  absl::Status status = query::FillTimeline(view, bounds, &timeline);
  ASSERT_TRUE(status.ok()) << status;
  ExpectSameTimes(timeline, reply);
  EXPECT_LE(timeline.gaps(), bounds.gaps);
  EXPECT_LE(timeline.kinds_size(), static_cast<int>(bounds.kinds + 13));
  uint64_t kept_ns = 0;
  for (const auto& band : timeline.bands()) {
    kept_ns += Sum(band.gap_duration_ns());
    for (uint64_t ns : band.gap_duration_ns()) {
      EXPECT_GE(ns, timeline.longest_left_out_ns());
    }
  }
  if (timeline.looked_at().empty()) {
    EXPECT_EQ(kept_ns + timeline.left_out_ns(), reply.gpu().idle_ns());
  } else {
    EXPECT_LT(kept_ns + timeline.left_out_ns(), reply.gpu().idle_ns());
  }
}

struct Case {
  uint32_t seed;
  bool restarts;
  GpuJobOptions options;
};

class GpuRange : public ::testing::TestWithParam<Case> {};

TEST_P(GpuRange, OfAnyReportEqualsTheModelExactly) {
  std::mt19937_64 random(GetParam().seed);
  std::vector<GpuEvent> events = MakeGpuJob(1, GetParam().options, random);
  std::vector<GpuEvent> second = MakeGpuJob(2, GetParam().options, random);
  events.insert(events.end(), second.begin(), second.end());
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
    return a.commit_ns < b.commit_ns;
  });
  Pipeline pipeline(GpuHello());
  Feeder(pipeline, random, GetParam().restarts).Feed(events);
  ASSERT_FALSE(::testing::Test::HasFailure());
  GpuModel model(events);
  ASSERT_GT(model.Report({}).traced_ns, 0u);
  ASSERT_GT(model.Report({}).gaps.size(), 20u);
  ASSERT_GT(model.Report({}).doing.size(), 20u);

  Compare(pipeline, model, {});
  CompareTimeline(pipeline, {});
  CompareBounded(pipeline, {.gaps = 50, .kinds = 5, .bins = 256});
  CompareBounded(pipeline, {.events = 100, .gaps = 500, .kinds = 500, .bins = 300});
  const uint64_t span = GetParam().options.span_ns;
  for (int i = 0; i < 20 && !::testing::Test::HasFailure(); ++i) {
    GpuQuery query;
    query.by = static_cast<lull::v1::GroupBy>(random() % 3);
    query.process = random() % 3;
    if (random() % 4 != 0) query.since = random() % span;
    if (random() % 4 != 0) query.until = query.since + random() % span;
    if (random() % 4 == 0) query.since -= query.since % kSecond;
    SCOPED_TRACE(::testing::Message()
                 << "by " << query.by << " process " << query.process << " since "
                 << query.since << " until " << query.until);
    Compare(pipeline, model, query);
    CompareTimeline(pipeline, query);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, GpuRange,
    ::testing::Values(Case{1, false, {20 * kSecond, true, 400'000}},
                      Case{2, false, {12 * kSecond, false, 300'000}},
                      Case{3, true, {20 * kSecond, true, 400'000}},
                      Case{4, true, {20 * kSecond, false, 2'000'000}},
                      Case{5, true, {Trials(200, 12) * kSecond, true, 5'000'000}},
                      Case{6, true, {Trials(200, 12) * kSecond, false, 5'000'000}}),
    [](const auto& info) { return "Seed" + std::to_string(info.param.seed); });

TEST(DerivedEvents, AreNoEventsOfTheJob) {
  std::mt19937_64 random(9);
  std::vector<GpuEvent> events = MakeGpuJob(1, {}, random);
  Pipeline pipeline(GpuHello());
  Feeder(pipeline, random, true).Feed(events);
  lull::v1::ReportReply reply = pipeline.Report({});
  EXPECT_EQ(reply.losses().events_stored(), events.size());
  EXPECT_EQ(reply.job().events(), events.size());
  EXPECT_EQ(reply.losses().events_committed(), events.size());
  EXPECT_GT(reply.gpu().traced_ns(), 0u);
}

}  // namespace
}  // namespace lull::test
