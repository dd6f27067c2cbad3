// The stories that `lull memory` is for: growth, retries, a cache that holds more than
// it hands out, a job that was attached to.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tests/daemon/query/memory_job.h"

namespace lull::test {
namespace {

TEST(MemoryOverSteps, PutsRingsThatComeLateInTheOrderOfTime) {
  // Steps and what is reserved in one ring, what is allocated and freed in another, and
  // that comes a batch later. Each batch is of 10 ms, each step of 3.
  constexpr uint64_t kBatch = 10 * kMs, kStep = 3 * kMs;
  MemoryJob job;
  std::map<uint64_t, std::pair<int64_t, int64_t>> want;  // step -> live, reserved
  std::vector<TestEvent> early, late;
  int64_t live = 0, reserved = 0;
  for (uint64_t at = 0; at < 1000 * kMs; at += kMs) {
    const uint64_t time = kJobStartNs + at;
    if (at % kBatch == 0 && at > 0) {
      lull::v1::Batch batch = job.Begin();
      job.Add(batch, 0, early);
      if (at > kBatch) job.Add(batch, 1, {late.begin(), late.end() - 10});
      late.erase(late.begin(), late.end() - 10);
      early.clear();
      job.Send(batch, time - kBatch);
    }
    const uint64_t block = at / kMs;
    if (block % 4 == 3) {
      late.push_back(Torch(time, kCuda0, 0x1000 + block - 2, 0, 0, kFree));
      live -= static_cast<int64_t>(1000 + block - 2);
    } else {
      late.push_back(Torch(time, kCuda0, 0x1000 + block, 1000 + block, 1));
      live += static_cast<int64_t>(1000 + block);
    }
    if (block % 7 == 0) {
      reserved = static_cast<int64_t>(block % 50) * kMiB;
      early.push_back(Reserved(time, kCuda0, static_cast<uint64_t>(reserved)));
    }
    if (at % kStep != 0) continue;
    early.push_back(Step(time + 1 - kStep, time + 1, at / kStep));
    want[at / kStep] = {live, reserved};
  }
  lull::v1::Batch batch = job.Begin();
  job.Add(batch, 0, early);
  job.Add(batch, 1, late);
  job.Send(batch, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.rows_size(), 1);
  ASSERT_EQ(static_cast<size_t>(reply.rows(0).points_size()), want.size());
  for (const auto& point : reply.rows(0).points()) {
    EXPECT_EQ(point.live_bytes(), want[point.step()].first) << point.step();
    EXPECT_EQ(point.reserved_bytes(), want[point.step()].second) << point.step();
  }
}

TEST(MemoryOverSteps, HasABlockWhoseFreeCameInBeforeItsAllocation) {
  // The backward pass allocates a gradient on its own thread, the main thread frees it
  // in the next step, and its ring is read first.
  MemoryJob job;
  job.Feed(0,
           {Step(kJobStartNs, kJobStartNs + 50, 0),
            Torch(kJobStartNs + 60, kCuda0, 0x1000, 0, 0, kFree),
            Step(kJobStartNs + 50, kJobStartNs + 100, 1)},
           kJobStartNs + 5);
  job.Feed(1, {Torch(kJobStartNs + 10, kCuda0, 0x1000, kMiB, 1)}, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.rows(0).points_size(), 2);
  EXPECT_EQ(reply.rows(0).points(0).live_bytes(), kMiB);
  EXPECT_EQ(reply.rows(0).points(1).live_bytes(), 0);
  EXPECT_EQ(reply.rows(0).live_bytes(), 0);
}

TEST(MemoryReserved, IsThatOfTheLatestReportWhicheverCameInLast) {
  MemoryJob job;
  job.Feed(0,
           {Reserved(kJobStartNs + 20, kCuda0, 50 * kMiB),
            Torch(kJobStartNs + 30, kCuda0, 0x1000, kMiB, 1)},
           kJobStartNs + 5);
  job.Feed(1, {Reserved(kJobStartNs + 10, kCuda0, 70 * kMiB)}, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  EXPECT_EQ(reply.rows(0).reserved_bytes(), 50 * kMiB);
  EXPECT_EQ(reply.rows(0).reserved_peak_bytes(), 50 * kMiB);
}

// Steps of 100 ms; each allocates and frees 64 MiB at one line, and keeps `kept` bytes
// of another.
std::vector<TestEvent> Training(uint64_t steps, uint64_t kept) {
  std::vector<TestEvent> events;
  for (uint64_t step = 0; step < steps; ++step) {
    uint64_t start = kJobStartNs + step * 100 * kMs;
    events.push_back(Torch(start + 10 * kMs, kCuda0, 0x1000, 64 * kMiB, 1));
    if (kept > 0) {
      events.push_back(Torch(start + 20 * kMs, kCuda0, 0x10000 + step, kept, 2));
    }
    events.push_back(Torch(start + 90 * kMs, kCuda0, 0x1000, 64 * kMiB, 0, kFree));
    events.push_back(Step(start, start + 100 * kMs, step));
  }
  return events;
}

TEST(MemoryGrowth, IsToldWithItsLinePerStep) {
  MemoryJob job;
  job.Feed(0, Training(200, kMiB), UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.rows_size(), 1);
  const lull::v1::MemoryGrowth& growth = reply.rows(0).growth();
  EXPECT_DOUBLE_EQ(growth.bytes_per_step(), kMiB);
  EXPECT_EQ(growth.first_step(), 100u);
  EXPECT_EQ(growth.last_step(), 199u);
  EXPECT_EQ(growth.bytes(), 99 * kMiB);
  ASSERT_EQ(growth.sites_size(), 1);
  EXPECT_EQ(growth.sites(0).site().line(), 12);
  EXPECT_EQ(growth.sites(0).bytes(), 99 * kMiB);
  EXPECT_EQ(growth.sites(0).blocks(), 99);
  EXPECT_EQ(reply.rows(0).peak_bytes(), (200 + 64) * kMiB);
}

TEST(MemoryGrowth, IsNotToldOfSteadyTraining) {
  MemoryJob job;
  job.Feed(0, Training(200, 0), UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  EXPECT_FALSE(reply.rows(0).has_growth());
  EXPECT_EQ(reply.rows(0).points_size(), 200);
  EXPECT_EQ(reply.rows(0).live_bytes(), 0);
  EXPECT_EQ(reply.rows(0).peak_bytes(), 64 * kMiB);
}

TEST(MemoryGrowth, IsNotToldWhereItIsNotWorthALine) {
  MemoryJob job;
  job.Feed(0, Training(200, 1000), UINT64_MAX / 2);
  EXPECT_FALSE(job.Memory().rows(0).has_growth());
}

TEST(MemoryGrowth, OfARangeIsJudgedByItsSteps) {
  MemoryJob job;
  std::vector<TestEvent> events = Training(100, 0);
  for (TestEvent event : Training(100, kMiB)) {
    event.start_ns += 100 * 100 * kMs;
    if (event.type == v1::EVENT_TYPE_STEP) {
      StepView{event}.set_number(StepView{event}.number() + 100);
    }
    events.push_back(event);
  }
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::ReportRequest request;
  request.set_until_ns(100 * 100 * kMs);
  EXPECT_FALSE(job.Memory(request).rows(0).has_growth());
  request.set_since_ns(100 * 100 * kMs);
  request.clear_until_ns();
  EXPECT_DOUBLE_EQ(job.Memory(request).rows(0).growth().bytes_per_step(), kMiB);
}

TEST(MemoryOverTime, IsWhatThereIsWithoutSteps) {
  MemoryJob job;
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 50; ++i) {
    events.push_back(Torch(kJobStartNs + i * kSecond + kMs, kCpu, 0x1000 + i, 1000, 1));
  }
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  const lull::v1::MemoryRow& row = reply.rows(0);
  EXPECT_EQ(row.allocator(), "torch_cpu");
  EXPECT_FALSE(row.points_are_steps());
  EXPECT_FALSE(row.has_growth());
  EXPECT_FALSE(row.reserved_known());
  ASSERT_EQ(row.points_size(), 50);
  EXPECT_EQ(row.points(9).time_ns(), 10 * kSecond);
  EXPECT_EQ(row.points(9).live_bytes(), 10'000);
}

TEST(MemoryOverTime, HasWiderPointsWhereTheJobIsLong) {
  MemoryJob job;
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 40'000; ++i) {
    events.push_back(Torch(kJobStartNs + i * kSecond, kCpu, 0x1000 + i, 1, 1));
  }
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  EXPECT_LE(reply.rows(0).points_size(), 1025);
  EXPECT_GT(reply.rows(0).points_size(), 100);
  for (const auto& point : reply.rows(0).points()) {
    EXPECT_EQ(
        point.live_bytes(),
        std::min<int64_t>(40'000, static_cast<int64_t>(point.time_ns() / kSecond)));
  }
}

TEST(MallocRetriesOfAJob, AreCountedWithTheirLineAndTime) {
  MemoryJob job;
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 3; ++i) {
    uint64_t at = kJobStartNs + i * kSecond;
    events.push_back(Malloc(at, 0, 512 * kMiB, 4, kFailed));
    events.push_back(Malloc(at + 10'000, 0x1000, 0, 4, kFree));
    events.push_back(Malloc(at + 20'000, 0x2000, 512 * kMiB, 4, i == 2 ? kFailed : 0));
  }
  events.push_back(Malloc(kJobStartNs + 5 * kSecond, 0, 7, 1, kFailed));  // given up
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.retries_size(), 1);
  const lull::v1::MallocRetries& retries = reply.retries(0);
  EXPECT_EQ(retries.pid(), 101u);
  EXPECT_EQ(retries.failed_calls(), 5u);
  EXPECT_EQ(retries.retries(), 3u);
  EXPECT_EQ(retries.succeeded(), 2u);
  EXPECT_EQ(retries.total_ns(), 3 * 21'000u);
  EXPECT_EQ(retries.site().line(), 11);
}

TEST(MallocRetriesOfAJob, AreNoRowWhereNothingFailed) {
  MemoryJob job;
  job.Feed(0, {Malloc(kJobStartNs, 0x1000, 5, 1)}, UINT64_MAX / 2);
  EXPECT_EQ(job.Memory().retries_size(), 0);
}

// A job of which 1 GiB was allocated when lull came.
TestEvent WhatWasThereBefore(uint64_t time_ns) {
  TestEvent event = Torch(time_ns, kCuda0, 0, 1024 * kMiB, 0, kBefore);
  event.api = 0;
  return event;
}

TEST(MemoryFromBefore, IsARowThatShrinksByTheFreesOfUnknownBlocks) {
  MemoryJob job;
  job.Feed(0,
           {WhatWasThereBefore(kJobStartNs + 1),
            Reserved(kJobStartNs + 2, kCuda0, 1200 * kMiB),
            Torch(kJobStartNs + 3, kCuda0, 0x1000, 64 * kMiB, 1),
            Torch(kJobStartNs + 4, kCuda0, 0x9000, 100 * kMiB, 0, kFree),
            Torch(kJobStartNs + 5, kCuda0, 0x1000, 64 * kMiB, 0, kFree)},
           UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.rows_size(), 1);
  const lull::v1::MemoryRow& row = reply.rows(0);
  EXPECT_EQ(row.live_bytes(), 924 * kMiB);
  EXPECT_EQ(row.peak_bytes(), 1088 * kMiB);
  EXPECT_EQ(row.reserved_bytes(), 1200 * kMiB);
  ASSERT_EQ(row.peak_sites_size(), 2);
  EXPECT_EQ(row.peak_sites(0).site().function(), "(allocated before lull came)");
  EXPECT_EQ(row.peak_sites(0).bytes(), 1024 * kMiB);
  EXPECT_EQ(row.peak_sites(0).blocks(), 0);
  EXPECT_EQ(row.peak_sites(1).bytes(), 64 * kMiB);
  EXPECT_EQ(reply.unknown_frees(), 0u);
}

TEST(MemoryAcrossControlSteps, ForgetsWhatMayHaveBeenFreedInOne) {
  MemoryJob job;
  TestEvent step;
  step.type = lull::v1::EVENT_TYPE_STEP;
  step.start_ns = kJobStartNs + 10 * kSecond;
  step.duration_ns = kSecond;
  StepView{step}.set_number(9).set_source(lull::v1::STEP_SOURCE_OPTIMIZER);
  StepView{step}.set_rested_ns(kSecond);
  TestEvent after = WhatWasThereBefore(kJobStartNs + 12 * kSecond);
  MemoryView{after}.set_bytes(1000 * kMiB);
  job.Feed(0,
           {Torch(kJobStartNs + 3, kCuda0, 0x1000, 64 * kMiB, 1),
            Malloc(kJobStartNs + 5, 0x70000, 8 * kMiB, 1), step, after,
            Torch(kJobStartNs + 13 * kSecond, kCuda0, 0x3000, 100 * kMiB, 1),
            // Allocated before the step, or in it.
            Torch(kJobStartNs + 14 * kSecond, kCuda0, 0x1000, 64 * kMiB, 0, kFree)},
           UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.rows_size(), 2);
  EXPECT_EQ(reply.rows(0).live_bytes(), 1036 * kMiB);
  EXPECT_EQ(reply.rows(1).live_bytes(), 8 * kMiB) << "seen in control steps, too";
  EXPECT_EQ(reply.unknown_frees(), 0u);
}

// A job that was awake in its first seconds and from second 20 on.
lull::v1::Batch WakeUp(MemoryJob& job) {
  lull::v1::Batch batch = job.Begin();
  lull::v1::ArmedStretch* stretch = batch.add_stretches();
  stretch->set_number(2);
  stretch->set_start_ns(kJobStartNs + 20 * kSecond);
  return batch;
}

TEST(MemoryAcrossSleep, ForgetsWhatMayHaveBeenFreedMeanwhile) {
  MemoryJob job;
  job.Feed(0,
           {WhatWasThereBefore(kJobStartNs + 1),
            Reserved(kJobStartNs + 2, kCuda0, 1200 * kMiB),
            Torch(kJobStartNs + 3, kCuda0, 0x1000, 64 * kMiB, 1),
            Torch(kJobStartNs + 4, kCuda0, 0x2000, 32 * kMiB, 1),
            Malloc(kJobStartNs + 5, 0x70000, 8 * kMiB, 1)},
           kJobStartNs + 10 * kSecond);
  job.Restart();
  lull::v1::Batch wake = WakeUp(job);
  job.Send(wake, kJobStartNs + 20 * kSecond);
  const lull::v1::Memory awake = job.Memory();
  for (const lull::v1::MemoryRow& row : awake.rows()) {
    EXPECT_EQ(row.live_bytes(), 0) << row.DebugString();
  }
  job.Restart();
  TestEvent before = WhatWasThereBefore(kJobStartNs + 21 * kSecond);
  MemoryView{before}.set_bytes(1060 * kMiB);
  job.Feed(0,
           {before, Torch(kJobStartNs + 22 * kSecond, kCuda0, 0x3000, 100 * kMiB, 1),
            // Of an earlier stretch, hence of those that the allocator told of.
            Torch(kJobStartNs + 23 * kSecond, kCuda0, 0x1000, 64 * kMiB, 0, kFree)},
           UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  ASSERT_EQ(reply.rows_size(), 2);
  const lull::v1::MemoryRow& torch = reply.rows(0);
  EXPECT_EQ(torch.live_bytes(), 1096 * kMiB);
  EXPECT_EQ(torch.peak_bytes(), 1160 * kMiB);
  EXPECT_EQ(torch.reserved_bytes(), 1200 * kMiB);
  ASSERT_EQ(torch.peak_sites_size(), 2);
  EXPECT_EQ(torch.peak_sites(0).bytes(), 1060 * kMiB);
  EXPECT_EQ(torch.peak_sites(1).bytes(), 100 * kMiB);
  EXPECT_EQ(torch.peak_sites(1).blocks(), 1);
  EXPECT_EQ(reply.rows(1).live_bytes(), 0);
  EXPECT_EQ(reply.rows(1).peak_bytes(), 8 * kMiB);
  EXPECT_EQ(reply.unknown_frees(), 0u);
  for (uint64_t second : {0, 15, 21, 22}) {
    lull::v1::ReportRequest until;
    until.set_until_ns(second * kSecond + kMs);
    int64_t live = second < 20 ? 1120 : second == 21 ? 1060 : 1160;
    EXPECT_EQ(job.Memory(until).rows(0).live_bytes(), live * kMiB) << second;
  }
}

TEST(MemoryAcrossSleep, LeavesAJobAloneThatWasArmedAnew) {
  MemoryJob job;
  lull::v1::Batch wake = WakeUp(job);
  job.Send(wake, kJobStartNs + 20 * kSecond);
  job.Feed(0, {Torch(kJobStartNs + 21 * kSecond, kCuda0, 0x1000, 64 * kMiB, 1)},
           kJobStartNs + 22 * kSecond);
  lull::v1::Batch again = WakeUp(job);
  job.Send(again, kJobStartNs + 23 * kSecond);
  EXPECT_EQ(job.Memory().rows(0).live_bytes(), 64 * kMiB);
}

TEST(MemoryFromBefore, GetsBackWhatWasFreedOfABlockThatCameInLater) {
  MemoryJob job;
  job.Feed(0,
           {WhatWasThereBefore(kJobStartNs + 1),
            Torch(kJobStartNs + 60, kCuda0, 0x1000, 64 * kMiB, 0, kFree)},
           kJobStartNs + 5);
  EXPECT_EQ(job.Memory().rows(0).live_bytes(), 960 * kMiB);
  job.Feed(1, {Torch(kJobStartNs + 10, kCuda0, 0x1000, 64 * kMiB, 1)}, UINT64_MAX / 2);
  lull::v1::Memory reply = job.Memory();
  EXPECT_EQ(reply.rows(0).live_bytes(), 1024 * kMiB);
  EXPECT_EQ(reply.rows(0).peak_bytes(), 1088 * kMiB);
}

TEST(MemoryFromBefore, IsRememberedByACollectorThatComesBack) {
  MemoryJob job;
  job.Feed(0, {WhatWasThereBefore(kJobStartNs + 1)}, kJobStartNs + 5);
  job.Restart();
  job.Feed(0, {Torch(kJobStartNs + 60, kCuda0, 0x1000, 24 * kMiB, 0, kFree)},
           UINT64_MAX / 2);
  EXPECT_EQ(job.Memory().rows(0).live_bytes(), 1000 * kMiB);
}

TEST(Memory, OfBlocksThatNoMemoryHasDoesNotOverflow) {
  constexpr int64_t kMost = int64_t{1} << 44;
  MemoryJob job;
  job.Feed(0,
           {Torch(kJobStartNs + 1, kCuda0, 0x1000, UINT64_MAX, 1),
            Torch(kJobStartNs + 2, kCuda0, 0x2000, INT64_MAX, 1),
            Torch(kJobStartNs + 3, kCuda0, 0x3000, uint64_t{1} << 62, 1),
            Torch(kJobStartNs + 4, kCuda0, 0x1000, UINT64_MAX, 0, kFree),
            Reserved(kJobStartNs + 5, kCuda0, UINT64_MAX)},
           UINT64_MAX / 2);
  const v1::Memory memory = job.Memory();
  EXPECT_EQ(memory.rows(0).peak_bytes(), 3 * kMost);
  EXPECT_EQ(memory.rows(0).live_bytes(), 2 * kMost);
  EXPECT_EQ(memory.rows(0).reserved_bytes(), kMost);
}

}  // namespace
}  // namespace lull::test
