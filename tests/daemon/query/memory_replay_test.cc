// `lull memory` against a replay of all events in the order of time.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/event_views.h"
#include "tests/daemon/query/memory_job.h"
#include "tests/trials.h"

namespace lull::test {
namespace {

struct ModelPoint {
  uint64_t step = 0;
  int64_t live = 0, reserved = 0;
  friend bool operator==(const ModelPoint&, const ModelPoint&) = default;
  friend std::ostream& operator<<(std::ostream& out, const ModelPoint& p) {
    return out << p.step << ":" << p.live << "/" << p.reserved;
  }
};

struct ReplayedRow {
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
  if (event.type == v1::EVENT_TYPE_DEVICE_MEMORY)
    return (event.flags & 2) != 0 ? "pinned -1" : "cuda -1";
  const TorchDevice device = MemoryView{event}.device();
  if (TypeOf(device) == 0) return "torch_cpu -1";
  return absl::StrCat("torch_cuda ", IndexOf(device));
}

class Model {
 public:
  Model(uint64_t since, uint64_t until) : since_(since), until_(until) {}

  std::map<std::string, ReplayedRow> Run(std::vector<TestEvent> events) {
    auto order = [](const TestEvent& e) {
      return e.start_ns + ((e.flags & kFree) != 0 ? 0 : e.duration_ns);
    };
    std::stable_sort(events.begin(), events.end(),
                     [&](const auto& a, const auto& b) { return order(a) < order(b); });
    for (const TestEvent& event : events) {
      uint64_t time = After(order(event));
      if (event.type == v1::EVENT_TYPE_STEP) {
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
    std::map<std::string, ReplayedRow> rows;
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
    ReplayedRow row;
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
    if (event.type == v1::EVENT_TYPE_TORCH_RESERVED) {
      whole.reserved = static_cast<int64_t>(ReservedView{event}.bytes());
      return;
    }
    if ((event.flags & kFailed) != 0) return;
    std::string allocator = name.substr(0, name.find(' '));
    std::string address = absl::StrCat(allocator, MemoryView{event}.address());
    auto known = blocks_.find(address);
    if (known != blocks_.end()) Release(known->second);
    if ((event.flags & kFree) != 0) {
      if (known != blocks_.end()) blocks_.erase(known);
      return;
    }
    auto bytes = static_cast<int64_t>(MemoryView{event}.bytes());
    blocks_[address] = {name, SiteText(event), bytes};
    whole.live += bytes;
    whole.sites[SiteText(event)].first += bytes;
    ++whole.sites[SiteText(event)].second;
  }
  void EndStep(const TestEvent& event) {
    for (auto& [name, whole] : wholes_) {
      whole.row.points.push_back(
          {StepView{event}.number(), whole.live, whole.reserved});
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
  const TorchDevice devices[] = {kCuda0, kCuda1, kCpu};
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
        const TorchDevice device = devices[below(3)];
        events.push_back(Torch(
            now, device, 4096 * (1 + below(25) + 100 * static_cast<uint32_t>(device)),
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

void Compare(const lull::v1::Memory& reply,
             const std::map<std::string, ReplayedRow>& model) {
  EXPECT_EQ(static_cast<size_t>(reply.rows_size()), model.size());
  for (const auto& row : reply.rows()) {
    std::string name = absl::StrCat(row.allocator(), " ", row.device());
    SCOPED_TRACE(name);
    ASSERT_TRUE(model.contains(name));
    const ReplayedRow& want = model.at(name);
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
  MemoryJob job;
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

INSTANTIATE_TEST_SUITE_P(Seeds, Memory, ::testing::Range(1u, Trials(13u, 4u)));

}  // namespace
}  // namespace lull::test
