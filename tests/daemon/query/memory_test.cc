// `lull memory` against a replay of all events in the order of time, and the stories
// that it is for: growth, retries, a cache that holds more than it hands out.
#include "daemon/query/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"

namespace lull::test {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;
constexpr int64_t kMiB = 1 << 20;
constexpr uint32_t kFree = 1, kFailed = 8;
constexpr uint32_t kCuda0 = 1 << 8, kCuda1 = 1 << 8 | 1, kCpu = 0xff;

TestEvent Torch(uint64_t time_ns, uint32_t device, uint64_t address, uint64_t bytes,
                uint32_t python, uint32_t flags = 0) {
  TestEvent event;
  event.type = 6;
  event.api = kApiTorch;
  event.start_ns = time_ns;
  event.arg0 = address;
  event.arg1 = bytes;
  event.arg2 = device;
  event.python = python;
  event.flags = flags;
  return event;
}
TestEvent Reserved(uint64_t time_ns, uint32_t device, uint64_t bytes) {
  TestEvent event;
  event.type = 21;
  event.start_ns = time_ns;
  event.arg1 = bytes;
  event.arg2 = device;
  return event;
}
TestEvent Step(uint64_t start_ns, uint64_t end_ns, uint64_t number) {
  TestEvent event;
  event.type = 19;
  event.start_ns = start_ns;
  event.duration_ns = end_ns - start_ns;
  event.arg0 = number;
  event.arg2 = 1;
  return event;
}
TestEvent Malloc(uint64_t time_ns, uint64_t address, uint64_t bytes, uint32_t python,
                 uint32_t flags = 0) {
  TestEvent event;
  event.type = 5;
  event.api = (flags & kFree) != 0 ? kApiFree : kApiMalloc;
  event.start_ns = time_ns;
  event.duration_ns = 1000;
  event.arg0 = (flags & kFailed) != 0 ? 0 : address;
  event.arg1 = bytes;
  event.python = python;
  event.flags = flags;
  return event;
}

// One process, one batch for each call of Feed.
class Job {
 public:
  Job() : pipeline_(MakeHello(MakeJobId(1))) {}

  void Feed(uint32_t ring, const std::vector<TestEvent>& events, uint64_t as_of_ns) {
    lull::v1::Batch batch = Begin();
    Add(batch, ring, events);
    Send(batch, as_of_ns);
  }
  lull::v1::Batch Begin() {
    lull::v1::Batch batch;
    batch.set_sequence(++sequence_);
    if (sequence_ == 1) {
      *batch.add_processes() = MakeProcess(1, 101, 0);
      AddStacks(batch, 1);
    }
    return batch;
  }
  void Add(lull::v1::Batch& batch, uint32_t ring,
           const std::vector<TestEvent>& events) {
    AddRun(batch, 1, ring, ends_[ring], events);
    ends_[ring] += events.size();
  }
  void Send(lull::v1::Batch& batch, uint64_t as_of_ns) {
    AddCounters(batch, 1, 0, ends_[0], as_of_ns);
    pipeline_.Apply(batch);
    pipeline_.Commit();
  }
  void Restart() { pipeline_.Restart(); }

  lull::v1::MemoryReply Memory(const lull::v1::ReportRequest& request = {}) {
    return pipeline_.Memory(request);
  }

 private:
  Pipeline pipeline_;
  uint64_t sequence_ = 0;
  std::map<uint32_t, uint64_t> ends_;
};

// ---- Against a replay ----

struct ModelPoint {
  uint64_t step = 0;
  int64_t live = 0, reserved = 0;
  friend bool operator==(const ModelPoint&, const ModelPoint&) = default;
  friend std::ostream& operator<<(std::ostream& out, const ModelPoint& p) {
    return out << p.step << ":" << p.live << "/" << p.reserved;
  }
};

struct ModelRow {
  int64_t live = 0, peak = 0;
  uint64_t peak_time = 0;
  int64_t reserved = 0, reserved_at_peak = 0, reserved_peak = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> sites;  // bytes, blocks
  std::vector<ModelPoint> points;
};

std::string SiteText(const TestEvent& event) {
  return event.python == 0 ? ":0 "
                           : absl::StrCat("/home/u/train.py:", 10 + event.python % 3,
                                          " f", event.python % 2);
}

std::string WholeText(const TestEvent& event) {
  if (event.type == 5) return (event.flags & 2) != 0 ? "pinned -1" : "cuda -1";
  if (event.arg2 >> 8 == 0) return "torch_cpu -1";
  return absl::StrCat("torch_cuda ", event.arg2 & 0xff);
}

class Model {
 public:
  Model(uint64_t since, uint64_t until) : since_(since), until_(until) {}

  std::map<std::string, ModelRow> Run(std::vector<TestEvent> events) {
    auto order = [](const TestEvent& e) {
      return e.start_ns + ((e.flags & kFree) != 0 ? 0 : e.duration_ns);
    };
    std::stable_sort(events.begin(), events.end(),
                     [&](const auto& a, const auto& b) { return order(a) < order(b); });
    for (const TestEvent& event : events) {
      uint64_t time = After(order(event));
      if (event.type == 19) {
        if (time >= since_ && time < until_) EndStep(event);
        continue;
      }
      uint64_t start = After(event.start_ns);
      if (start >= until_) continue;
      if (start >= since_) Enter();
      Apply(event);
      if (start < since_) continue;
      for (auto& [name, whole] : wholes_) Raise(whole, time);
    }
    Enter();
    std::map<std::string, ModelRow> rows;
    for (auto& [name, whole] : wholes_) {
      if (whole.row.peak == 0) continue;
      whole.row.live = whole.live;
      whole.row.reserved = whole.reserved;
      rows[name] = whole.row;
    }
    return rows;
  }

 private:
  struct Block {
    std::string whole, site;
    int64_t bytes;
  };
  struct Whole {
    int64_t live = 0, reserved = 0;
    std::map<std::string, std::pair<int64_t, int64_t>> sites;
    ModelRow row;
  };

  static uint64_t After(uint64_t time) {
    return time > kJobStartNs ? time - kJobStartNs : 0;
  }

  void Enter() {
    if (std::exchange(entered_, true)) return;
    for (auto& [name, whole] : wholes_) {
      whole.row.peak = INT64_MIN;
      whole.row.reserved_peak = INT64_MIN;
      Raise(whole, since_);
    }
  }
  void Raise(Whole& whole, uint64_t time) {
    whole.row.reserved_peak = std::max(whole.row.reserved_peak, whole.reserved);
    if (whole.live <= whole.row.peak) return;
    whole.row.peak = whole.live;
    whole.row.peak_time = time;
    whole.row.reserved_at_peak = whole.reserved;
    whole.row.sites.clear();
    for (const auto& [site, sum] : whole.sites) {
      if (sum.second != 0) whole.row.sites[site] = sum;
    }
  }
  void Release(const Block& block) {
    Whole& whole = wholes_[block.whole];
    whole.live -= block.bytes;
    whole.sites[block.site].first -= block.bytes;
    --whole.sites[block.site].second;
  }
  void Apply(const TestEvent& event) {
    std::string name = WholeText(event);
    Whole& whole = wholes_[name];
    if (event.type == 21) {
      whole.reserved = static_cast<int64_t>(event.arg1);
      return;
    }
    if ((event.flags & kFailed) != 0) return;
    std::string allocator = name.substr(0, name.find(' '));
    std::string address = absl::StrCat(allocator, event.arg0);
    auto known = blocks_.find(address);
    if (known != blocks_.end()) Release(known->second);
    if ((event.flags & kFree) != 0) {
      if (known != blocks_.end()) blocks_.erase(known);
      return;
    }
    auto bytes = static_cast<int64_t>(event.arg1);
    blocks_[address] = {name, SiteText(event), bytes};
    whole.live += bytes;
    whole.sites[SiteText(event)].first += bytes;
    ++whole.sites[SiteText(event)].second;
  }
  void EndStep(const TestEvent& event) {
    for (auto& [name, whole] : wholes_) {
      whole.row.points.push_back({event.arg0, whole.live, whole.reserved});
    }
  }

  const uint64_t since_, until_;
  bool entered_ = false;
  std::map<std::string, Block> blocks_;
  std::map<std::string, Whole> wholes_;
};

// One event after the other, so that none happens while another does.
std::vector<TestEvent> RandomEvents(uint32_t seed, size_t count, uint64_t span_ns) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t limit) { return random() % limit; };
  std::vector<TestEvent> events;
  uint64_t now = kJobStartNs - kSecond;
  uint64_t step_start = now;
  uint64_t steps = 0;
  const uint32_t devices[] = {kCuda0, kCuda1, kCpu};
  for (size_t i = 0; i < count; ++i) {
    now += 50'000 + below(2 * span_ns / count);
    auto python = static_cast<uint32_t>(below(kPythonStacks + 1));
    uint32_t flags = below(2) == 0 ? kFree : 0;
    switch (below(10)) {
      case 0:
        events.push_back(Step(step_start, now, steps++));
        step_start = now;
        break;
      case 1:
        events.push_back(Reserved(now, devices[below(2)], below(100) << 20));
        break;
      case 2:
      case 3:
        if (below(4) == 0) flags |= kFailed;
        if (below(4) == 0) flags |= 2;
        events.push_back(
            Malloc(now, 4096 * (1 + below(20)), 1 + below(50'000), python, flags));
        break;
      default:
        // An address belongs to one device, as it does in a process.
        uint32_t device = devices[below(3)];
        events.push_back(Torch(now, device, 4096 * (1 + below(25) + 100 * device),
                               1 + below(100'000), python, flags));
    }
  }
  return events;
}

std::map<std::string, std::pair<int64_t, int64_t>> SitesOf(
    const lull::v1::MemoryRow& row) {
  std::map<std::string, std::pair<int64_t, int64_t>> sites;
  for (const auto& site : row.peak_sites()) {
    sites[absl::StrCat(site.site().file(), ":", site.site().line(), " ",
                       site.site().function())] = {site.bytes(), site.blocks()};
  }
  return sites;
}

void Compare(const lull::v1::MemoryReply& reply,
             const std::map<std::string, ModelRow>& model) {
  EXPECT_EQ(static_cast<size_t>(reply.rows_size()), model.size());
  for (const auto& row : reply.rows()) {
    std::string name = absl::StrCat(row.allocator(), " ", row.device());
    SCOPED_TRACE(name);
    ASSERT_TRUE(model.contains(name));
    const ModelRow& want = model.at(name);
    EXPECT_EQ(row.live_bytes(), want.live);
    EXPECT_EQ(row.peak_bytes(), want.peak);
    EXPECT_EQ(row.peak_time_ns(), want.peak_time);
    if (row.reserved_known()) {
      EXPECT_EQ(row.reserved_bytes(), want.reserved);
      EXPECT_EQ(row.reserved_at_peak_bytes(), want.reserved_at_peak);
      EXPECT_EQ(row.reserved_peak_bytes(), want.reserved_peak);
    }
    EXPECT_EQ(SitesOf(row), want.sites);
    int64_t sum = row.peak_others_bytes();
    for (const auto& site : row.peak_sites()) sum += site.bytes();
    EXPECT_EQ(sum, row.peak_bytes());
    if (!row.points_are_steps()) continue;
    std::vector<ModelPoint> points;
    for (const auto& p : row.points()) {
      points.push_back({p.step(), p.live_bytes(), p.reserved_bytes()});
    }
    // The allocator may have been seen for the first time after the first steps.
    std::vector<ModelPoint> wanted;
    for (const ModelPoint& point : points) {
      auto it = std::find_if(want.points.begin(), want.points.end(),
                             [&](const auto& p) { return p.step == point.step; });
      wanted.push_back(it != want.points.end() ? *it : ModelPoint{point.step, 0, 0});
    }
    EXPECT_EQ(points, wanted);
    EXPECT_GE(points.size(), want.points.size());
  }
}

class Memory : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Memory, EqualsAReplayOverAnyRangeAlsoAfterRestarts) {
  const uint64_t span = kSecond * (4 + 300 * (GetParam() % 3));
  std::vector<TestEvent> events = RandomEvents(GetParam(), 3000, span);
  std::mt19937_64 random(GetParam() + 1000);
  Job job;
  for (size_t at = 0; at < events.size();) {
    size_t count = std::min<size_t>(1 + random() % 300, events.size() - at);
    lull::v1::Batch batch = job.Begin();
    std::map<uint32_t, std::vector<TestEvent>> rings;
    for (size_t i = at; i < at + count; ++i) rings[random() % 3].push_back(events[i]);
    for (const auto& [ring, mine] : rings) job.Add(batch, ring, mine);
    at += count;
    const TestEvent& last = events[at - 1];
    job.Send(batch, last.start_ns + last.duration_ns + 1);
    if (GetParam() % 2 == 0 && random() % 4 == 0) job.Restart();
  }
  for (int i = 0; i < 20 && !::testing::Test::HasFailure(); ++i) {
    lull::v1::ReportRequest request;
    uint64_t since = 0, until = UINT64_MAX;
    if (i > 0 && random() % 4 != 0) request.set_since_ns(since = random() % span);
    if (i > 0 && random() % 4 != 0) {
      request.set_until_ns(until = since + 1 + random() % span);
    }
    SCOPED_TRACE(absl::StrCat("since ", since, " until ", until));
    Compare(job.Memory(request), Model(since, until).Run(events));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Memory, ::testing::Range(1u, 13u));

TEST(MemoryOverSteps, PutsRingsThatComeLateInTheOrderOfTime) {
  // Steps and what is reserved in one ring, what is allocated and freed in another, and
  // that comes a batch later. Each batch is of 10 ms, each step of 3.
  constexpr uint64_t kBatch = 10 * kMs, kStep = 3 * kMs;
  Job job;
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
  lull::v1::MemoryReply reply = job.Memory();
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
  Job job;
  job.Feed(0,
           {Step(kJobStartNs, kJobStartNs + 50, 0),
            Torch(kJobStartNs + 60, kCuda0, 0x1000, 0, 0, kFree),
            Step(kJobStartNs + 50, kJobStartNs + 100, 1)},
           kJobStartNs + 5);
  job.Feed(1, {Torch(kJobStartNs + 10, kCuda0, 0x1000, kMiB, 1)}, UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
  ASSERT_EQ(reply.rows(0).points_size(), 2);
  EXPECT_EQ(reply.rows(0).points(0).live_bytes(), kMiB);
  EXPECT_EQ(reply.rows(0).points(1).live_bytes(), 0);
  EXPECT_EQ(reply.rows(0).live_bytes(), 0);
}

TEST(MemoryReserved, IsThatOfTheLatestReportWhicheverCameInLast) {
  Job job;
  job.Feed(0,
           {Reserved(kJobStartNs + 20, kCuda0, 50 * kMiB),
            Torch(kJobStartNs + 30, kCuda0, 0x1000, kMiB, 1)},
           kJobStartNs + 5);
  job.Feed(1, {Reserved(kJobStartNs + 10, kCuda0, 70 * kMiB)}, UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
  EXPECT_EQ(reply.rows(0).reserved_bytes(), 50 * kMiB);
  EXPECT_EQ(reply.rows(0).reserved_peak_bytes(), 50 * kMiB);
}

// ---- Stories ----

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
  Job job;
  job.Feed(0, Training(200, kMiB), UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
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
  Job job;
  job.Feed(0, Training(200, 0), UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
  EXPECT_FALSE(reply.rows(0).has_growth());
  EXPECT_EQ(reply.rows(0).points_size(), 200);
  EXPECT_EQ(reply.rows(0).live_bytes(), 0);
  EXPECT_EQ(reply.rows(0).peak_bytes(), 64 * kMiB);
}

TEST(MemoryGrowth, IsNotToldWhereItIsNotWorthALine) {
  Job job;
  job.Feed(0, Training(200, 1000), UINT64_MAX / 2);
  EXPECT_FALSE(job.Memory().rows(0).has_growth());
}

TEST(MemoryGrowth, OfARangeIsJudgedByItsSteps) {
  Job job;
  std::vector<TestEvent> events = Training(100, 0);
  for (TestEvent event : Training(100, kMiB)) {
    event.start_ns += 100 * 100 * kMs;
    if (event.type == 19) event.arg0 += 100;
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
  Job job;
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 50; ++i) {
    events.push_back(Torch(kJobStartNs + i * kSecond + kMs, kCpu, 0x1000 + i, 1000, 1));
  }
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
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
  Job job;
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 40'000; ++i) {
    events.push_back(Torch(kJobStartNs + i * kSecond, kCpu, 0x1000 + i, 1, 1));
  }
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
  EXPECT_LE(reply.rows(0).points_size(), 1025);
  EXPECT_GT(reply.rows(0).points_size(), 100);
  for (const auto& point : reply.rows(0).points()) {
    EXPECT_EQ(
        point.live_bytes(),
        std::min<int64_t>(40'000, static_cast<int64_t>(point.time_ns() / kSecond)));
  }
}

TEST(MallocRetriesOfAJob, AreCountedWithTheirLineAndTime) {
  Job job;
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 3; ++i) {
    uint64_t at = kJobStartNs + i * kSecond;
    events.push_back(Malloc(at, 0, 512 * kMiB, 4, kFailed));
    events.push_back(Malloc(at + 10'000, 0x1000, 0, 4, kFree));
    events.push_back(Malloc(at + 20'000, 0x2000, 512 * kMiB, 4, i == 2 ? kFailed : 0));
  }
  events.push_back(Malloc(kJobStartNs + 5 * kSecond, 0, 7, 1, kFailed));  // given up
  job.Feed(0, events, UINT64_MAX / 2);
  lull::v1::MemoryReply reply = job.Memory();
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
  Job job;
  job.Feed(0, {Malloc(kJobStartNs, 0x1000, 5, 1)}, UINT64_MAX / 2);
  EXPECT_EQ(job.Memory().retries_size(), 0);
}

}  // namespace
}  // namespace lull::test
