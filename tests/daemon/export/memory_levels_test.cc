#include "daemon/export/memory_levels.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace lull::exports {
namespace {

using aggregate::Event;
using aggregate::EventType;

constexpr uint32_t kTotal = 1, kTaken = 2, kReserved = 3;

std::vector<aggregate::Series> SomeSeries() {
  std::vector<aggregate::Series> series(4);
  series[kTotal].type = EventType::kTotalGroup;
  series[kTotal].variant = static_cast<uint8_t>(aggregate::Allocator::kTorchCuda);
  series[kTotal].shape = 5;
  series[kTaken] = series[kTotal];
  series[kTaken].type = EventType::kTorchMemory;
  series[kTaken].total_group = kTotal;
  series[kReserved].type = EventType::kTorchReserved;
  series[kReserved].variant = series[kTotal].variant;
  series[kReserved].shape = 5;
  return series;
}

Event Taken(uint64_t time_ns, uint64_t bytes) {
  Event event;
  event.series = kTaken;
  event.start_ns = time_ns;
  MemoryView{event}.set_bytes(bytes);
  return event;
}

using Told = std::vector<std::tuple<Measure, uint32_t, uint64_t, int64_t>>;

Told LevelsOf(const std::vector<Event>& events, uint64_t since_ns) {
  const auto series = SomeSeries();
  MemoryLevels levels(series, since_ns);
  Told told;
  auto tell = [&told](Measure measure, uint32_t device, uint64_t time_ns,
                      int64_t bytes) {
    told.emplace_back(measure, device, time_ns, bytes);
  };
  for (const Event& event : events) levels.Add(event, tell);
  levels.Finish(tell);
  return told;
}

TEST(MemoryLevels, AreToldInTheOrderOfTime) {
  EXPECT_EQ(LevelsOf({Taken(20, 5), Taken(10, 7)}, 0),
            (Told{{Measure::kLive, 5, 10, 7}, {Measure::kLive, 5, 20, 12}}));
}

TEST(MemoryLevels, ARangeBeginsWithWhatIsLive) {
  EXPECT_EQ(LevelsOf({Taken(10, 7), Taken(30, 5)}, 20),
            (Told{{Measure::kLive, 5, 20, 7}, {Measure::kLive, 5, 30, 12}}));
  EXPECT_EQ(LevelsOf({Taken(10, 7)}, 20), (Told{{Measure::kLive, 5, 20, 7}}));
}

TEST(MemoryLevels, WhatIsReservedIsOneStep) {
  Event first;
  first.series = kReserved;
  first.start_ns = 10;
  MemoryView{first}.set_bytes(100);
  Event second = first;
  second.start_ns = 20;
  MemoryView{second}.set_bytes(60);
  second.released_series = kReserved;
  second.released_bytes = 100;
  EXPECT_EQ(LevelsOf({first, second}, 0),
            (Told{{Measure::kReserved, 5, 10, 100}, {Measure::kReserved, 5, 20, 60}}));
}

}  // namespace
}  // namespace lull::exports
