// `lull ranks` by the kernels of NCCL, as relays tell of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/base/gpu_event_views.h"
#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr uint64_t kActive = 2, kOff = 0;
constexpr uint32_t kTid = 1000;
constexpr uint32_t kComputing = 1, kAllReduce = 4;  // kernels of test_gpu.h

class RanksOnDevices : public testing::Test {
 protected:
  static constexpr size_t kRanks = 4;

  void Trace(bool on) {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      TestEvent& event = Put(rank, v1::EVENT_TYPE_GPU_TRACING, now_ns_, 0);
      TracingView{event}.set_state(on ? kActive : kOff);
    }
    now_ns_ += kMs;
  }

  // Each rank computes, and then all of `members` reduce. Before that `late` collects
  // garbage, or computes, for `by_ns`.
  void Step(const std::vector<size_t>& members, size_t late, uint64_t by_ns,
            bool computes = false) {
    const uint64_t came_ns = now_ns_ + 5 * kMs + by_ns;
    for (size_t rank : members) {
      const bool is_late = rank == late && by_ns > 0;
      uint64_t at = now_ns_;
      Launch(rank, at, kComputing, at + 10 * kUs,
             at + 4 * kMs + (is_late && computes ? by_ns : 0));
      if (is_late && !computes) {
        Put(rank, v1::EVENT_TYPE_GC_PAUSE, at + 4 * kMs, by_ns).python = 2;
      }
      at += 5 * kMs + (is_late ? by_ns : 0);
      Launch(rank, at - 15 * kUs, kAllReduce, at, came_ns + kMs);
    }
    now_ns_ = came_ns + 2 * kMs;
  }
  void Step(size_t late = 0, uint64_t by_ns = 0, bool computes = false) {
    Step({0, 1, 2, 3}, late, by_ns, computes);
  }

  // Each rank waits for the device at the end of a step; `late` runs code before the
  // next one.
  void StepBehindASync(size_t late, uint64_t by_ns) {
    const uint64_t end_ns = now_ns_ + by_ns + 6 * kMs;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const uint64_t at = now_ns_ + (rank == late ? by_ns : 0);
      Launch(rank, at, kComputing, at + 10 * kUs, at + 4 * kMs);
      Launch(rank, at + 10 * kUs, kAllReduce, at + 5 * kMs, end_ns);
      Sync(rank, at + 20 * kUs, end_ns);
    }
    now_ns_ = end_ns + kMs;
  }

  void Sync(size_t rank, uint64_t start_ns, uint64_t end_ns) {
    TestEvent& sync = Put(rank, v1::EVENT_TYPE_SYNC, start_ns, end_ns - start_ns);
    sync.api = kApiSync;
    sync.python = 2;
  }

  void Launch(size_t rank, uint64_t called_ns, uint32_t kernel, uint64_t start_ns,
              uint64_t end_ns) {
    const CorrelationId correlation{++correlation_};
    Put(rank, v1::EVENT_TYPE_LAUNCH, called_ns, 5 * kUs).api = kApiLaunch;
    TestEvent& call = Put(rank, v1::EVENT_TYPE_API_CALL, called_ns, 4 * kUs);
    call.api = kApiCudaLaunch;
    ApiCallView{call}.set_caller(ThreadId{kTid}).set_correlation(correlation);
    TestEvent& event =
        Put(rank, v1::EVENT_TYPE_GPU_KERNEL, start_ns, end_ns - start_ns);
    event.python = kernel;
    event.native = 1;  // a stream
    OperationView{event}.set_correlation(correlation);
  }

  TestEvent& Put(size_t rank, uint32_t type, uint64_t start_ns, uint64_t duration_ns) {
    TestEvent& event = events_[rank].emplace_back();
    event.type = type;
    event.start_ns = start_ns;
    event.duration_ns = duration_ns;
    event.tid = kTid;
    return event;
  }

  v1::Ranks Ask() {
    v1::Batch batch;
    batch.set_sequence(1);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const uint64_t key = rank + 1;
      v1::ProcessInfo* process = batch.add_processes();
      *process = MakeProcess(key, 100 + static_cast<uint32_t>(key),
                             static_cast<int32_t>(rank));
      process->set_world_size(kRanks);
      AddStacks(batch, key);
      AddGpu(batch, key);
      std::stable_sort(events_[rank].begin(), events_[rank].end(),
                       [](const TestEvent& a, const TestEvent& b) {
                         return a.start_ns + a.duration_ns < b.start_ns + b.duration_ns;
                       });
      AddRun(batch, key, 0, 0, events_[rank]);
      AddCounters(batch, key, 0, events_[rank].size(), now_ns_);
      auto* end = batch.add_process_ends();
      end->set_process_key(key);
      end->set_end_ns(now_ns_);
    }
    job_.Apply(batch);
    job_.Commit();
    v1::ReportRequest request;
    request.set_phase(v1::PHASE_ALL);
    request.add_sections(v1::SECTION_RANKS);
    return job_.Report(request).ranks();
  }

  Pipeline job_{Hello()};
  std::vector<TestEvent> events_[kRanks];
  uint32_t correlation_ = 0;
  uint64_t now_ns_ = kJobStartNs + kSecond;

 private:
  static v1::Hello Hello() {
    v1::Hello hello = MakeHello(MakeJobId(1));
    hello.mutable_job()->set_gpu_mode(v1::GPU_MODE_CONTINUOUS);
    return hello;
  }
};

TEST_F(RanksOnDevices, NameTheLateOneAndItsCause) {
  Trace(true);
  for (int i = 0; i < 100; ++i) Step(2, i % 10 == 9 ? 50 * kMs : 0);
  Trace(false);
  const v1::Ranks ranks = Ask();
  EXPECT_TRUE(ranks.on_device());
  EXPECT_EQ(ranks.collectives(), 100u);
  ASSERT_EQ(ranks.ranks_size(), 4);
  EXPECT_EQ(ranks.ranks(0).rank(), 2);
  ASSERT_EQ(ranks.ranks(0).culprits_size(), 1);
  EXPECT_EQ(ranks.ranks(0).culprits(0).cause(), "gc");
  EXPECT_NEAR(static_cast<double>(ranks.ranks(0).cost_to_others_ns()),
              3.0 * 10 * 50 * kMs, 0.01 * 3 * 10 * 50 * kMs);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(ranks.ranks(i).culprits_size(), 0);
  EXPECT_EQ(ranks.unmatched_ns(), 0u);

  // When: in as many stretches, each where its step is.
  ASSERT_EQ(ranks.late_stretches_size(), 10);
  uint64_t cost_ns = 0, start_ns = 0;
  for (const v1::LateStretch& late : ranks.late_stretches()) {
    EXPECT_EQ(late.rank(), 2);
    EXPECT_EQ(late.count(), 1u);
    EXPECT_GT(late.start_ns() + 1, start_ns);
    start_ns = late.start_ns() + late.duration_ns();
    cost_ns += late.cost_to_others_ns();
  }
  EXPECT_EQ(cost_ns, ranks.ranks(0).cost_to_others_ns());
  const v1::LateStretch& last = *ranks.late_stretches().rbegin();
  const uint64_t came_ns = now_ns_ - kMs - 3 * kMs - kJobStartNs;
  EXPECT_LE(last.start_ns(), came_ns);
  EXPECT_GT(last.start_ns() + last.duration_ns(), came_ns);
}

TEST_F(RanksOnDevices, NameTheOneThatComputesLonger) {
  Trace(true);
  for (int i = 0; i < 50; ++i) Step(1, 3 * kMs, true);
  Trace(false);
  const v1::Ranks ranks = Ask();
  ASSERT_EQ(ranks.ranks_size(), 4);
  EXPECT_EQ(ranks.ranks(0).rank(), 1);
  ASSERT_EQ(ranks.ranks(0).culprits_size(), 1);
  EXPECT_EQ(ranks.ranks(0).culprits(0).cause(), "gpu");
}

// 9 ms of code follow a sync that blocked for 6: 6 ms of the idle time count as its
// own.
TEST_F(RanksOnDevices, NameTheOneThatRunsCodeBehindASync) {
  Trace(true);
  for (int i = 0; i < 100; ++i) StepBehindASync(2, i % 10 == 9 ? 9 * kMs : 0);
  Trace(false);
  const v1::Ranks ranks = Ask();
  ASSERT_EQ(ranks.ranks_size(), 4);
  EXPECT_EQ(ranks.ranks(0).rank(), 2);
  ASSERT_EQ(ranks.ranks(0).culprits_size(), 1);
  EXPECT_EQ(ranks.ranks(0).culprits(0).cause(), "host_code");
  EXPECT_NEAR(static_cast<double>(ranks.ranks(0).cost_to_others_ns()),
              3.0 * 10 * 9 * kMs, 0.01 * 3 * 10 * 9 * kMs);
}

// One waits for its device where the others do not, and so launches late. What it does
// then the others do, too, but earlier.
TEST_F(RanksOnDevices, NameTheSyncThatAloneMadeOneLate) {
  Trace(true);
  for (int i = 0; i < 100; ++i) {
    const bool late = i % 10 == 9;
    const uint64_t end_ns = now_ns_ + (late ? 8 : 6) * kMs;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      Launch(rank, now_ns_, kComputing, now_ns_ + 10 * kUs, now_ns_ + 4 * kMs);
      const bool waits = late && rank == 1;
      if (waits) Sync(rank, now_ns_ + 20 * kUs, now_ns_ + 4 * kMs);
      const uint64_t came_ns = now_ns_ + (waits ? 7 : 5) * kMs;
      Launch(rank, came_ns - 15 * kUs, kAllReduce, came_ns, end_ns);
    }
    now_ns_ = end_ns + kMs;
  }
  Trace(false);
  const v1::Ranks ranks = Ask();
  EXPECT_EQ(ranks.ranks(0).rank(), 1);
  ASSERT_EQ(ranks.ranks(0).culprits_size(), 1);
  EXPECT_EQ(ranks.ranks(0).culprits(0).cause(), "sync");
}

// Ranks 0 and 1 are one group, 2 and 3 another, each with a communicator of its own,
// and rank 3 is late in its own: that costs rank 2, and no other.
TEST_F(RanksOnDevices, KnowGroupsOfSomeRanks) {
  Trace(true);
  for (int i = 0; i < 60; ++i) {
    const uint64_t begun_ns = now_ns_;
    Step({0, 1}, 0, 0);
    now_ns_ = begun_ns + kMs / 2;
    Step({2, 3}, 3, i % 6 == 5 ? 20 * kMs : 0);
    now_ns_ = begun_ns + 40 * kMs;
  }
  Trace(false);
  const v1::Ranks ranks = Ask();
  ASSERT_EQ(ranks.ranks_size(), 4);
  EXPECT_EQ(ranks.ranks(0).rank(), 3);
  EXPECT_NEAR(static_cast<double>(ranks.ranks(0).cost_to_others_ns()), 10.0 * 20 * kMs,
              0.01 * 10 * 20 * kMs);
  for (const v1::RankRow& row : ranks.ranks()) {
    if (row.rank() != 3) {
      EXPECT_EQ(row.cost_to_others_ns(), 0u) << row.rank();
    }
    if (row.rank() < 2) {
      EXPECT_LT(row.waited_ns(), kMs) << row.rank();
    }
  }
}

// Rank 3 is the one that all wait for, and is traced in the first steps alone: of the
// others one is the last, but nobody waits for that.
TEST_F(RanksOnDevices, AccuseNobodyWhereOneIsNotTraced) {
  Trace(true);
  for (int i = 0; i < 20; ++i) Step();
  const size_t seen = events_[3].size();
  for (int i = 0; i < 80; ++i) {
    const bool late = i % 8 == 7;
    if (late) {
      const uint64_t begun_ns = now_ns_;
      // Rank 1 collects garbage for 10 ms, and rank 3 comes 50 ms late.
      Step(3, 50 * kMs);
      for (TestEvent& event : events_[1]) {
        if (event.start_ns == begun_ns + 5 * kMs) {
          event.start_ns += 10 * kMs;
          event.duration_ns -= 10 * kMs;
        }
      }
      Put(1, v1::EVENT_TYPE_GC_PAUSE, begun_ns + 4 * kMs, 10 * kMs).python = 2;
    } else {
      Step();
    }
  }
  events_[3].resize(seen);
  Put(3, v1::EVENT_TYPE_GPU_TRACING, events_[3].back().start_ns + 10 * kMs, 0);
  TracingView{events_[3].back()}.set_state(kOff);
  Trace(false);
  const v1::Ranks ranks = Ask();
  ASSERT_EQ(ranks.ranks_size(), 4);
  for (const v1::RankRow& row : ranks.ranks()) {
    EXPECT_EQ(row.culprits_size(), 0) << row.ShortDebugString();
  }
  // Of three ranks in 70 steps and more, of which ten took 50 ms longer.
  EXPECT_GE(ranks.unmatched_ns(), 2 * 10 * 50 * kMs);
}

}  // namespace
}  // namespace lull::test
