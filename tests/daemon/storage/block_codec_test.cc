#include "daemon/storage/block_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "daemon/storage/cell_codec.h"

namespace lull::storage {
namespace {

using aggregate::Event;

std::vector<Event> RandomEvents(size_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Event> events(count);
  for (Event& e : events) {
    auto number = [&] { return random() >> (random() % 64); };
    e.start_ns = number() >> 1;
    e.duration_ns = number();
    e.arg0 = number();
    e.arg1 = number();
    e.arg2 = static_cast<uint32_t>(number());
    e.flags = static_cast<uint32_t>(number());
    e.tid = 4711;
    e.series = static_cast<uint32_t>(number());
    e.released_series = static_cast<uint32_t>(number());
    e.released_bytes = number();
  }
  return events;
}

bool Same(const std::vector<Event>& a, const std::vector<Event>& b) {
  return a.size() == b.size() &&
         (a.empty() || memcmp(a.data(), b.data(), a.size() * sizeof(Event)) == 0);
}

TEST(BlockCodec, GivesBackWhatItWasGiven) {
  BlockEncoder encoder;
  BlockDecoder decoder;
  for (size_t count :
       {size_t{0}, size_t{1}, size_t{2}, size_t{1000}, kMaxBlockEvents}) {
    std::vector<Event> events = RandomEvents(count, static_cast<uint32_t>(count));
    std::vector<Event> back;
    ASSERT_TRUE(decoder.Decode(encoder.Encode(events.data(), count), &back).ok());
    EXPECT_TRUE(Same(events, back)) << count;
  }
}

TEST(BlockCodec, NoticesEveryFlippedBit) {
  BlockEncoder encoder;
  BlockDecoder decoder;
  std::vector<Event> events = RandomEvents(50, 1);
  std::string good(encoder.Encode(events.data(), events.size()));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    std::vector<Event> back;
    absl::Status status = decoder.Decode(bad, &back);
    EXPECT_TRUE(!status.ok() || Same(events, back)) << "bit " << bit;
    EXPECT_TRUE(status.ok() || back.empty());
  }
}

TEST(BlockCodec, RefusesWhatIsCutOff) {
  BlockEncoder encoder;
  BlockDecoder decoder;
  std::vector<Event> events = RandomEvents(50, 1);
  std::string good(encoder.Encode(events.data(), events.size()));
  for (size_t size = 0; size < good.size(); ++size) {
    std::vector<Event> back;
    EXPECT_FALSE(decoder.Decode(good.substr(0, size), &back).ok()) << size;
  }
}

TEST(CellCodec, GivesBackWhatItWasGiven) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    CellChunk chunk = {};
    for (aggregate::Cell& cell : chunk) {
      if (random() % 2 == 0) continue;
      auto number = [&] { return random() % 3 == 0 ? 0 : random() >> (random() % 64); };
      cell.count = number() >> 1;
      cell.total_ns = number() | 1;
      cell.max_ns = number();
      cell.min_ns = cell.count > 0 ? cell.max_ns >> (random() % 64) : 0;
      cell.amount = number();
      cell.amount2 = number();
      cell.frees = number();
      cell.live = static_cast<int64_t>(number());
      cell.peak = static_cast<int64_t>(number());
    }
    CellChunk back = {};
    ASSERT_TRUE(
        DecodeChunk(EncodeChunk(chunk),
                    [&](uint32_t i, const aggregate::Cell& cell) { back[i] = cell; }));
    EXPECT_EQ(chunk, back);
  }
}

TEST(CellCodec, SurvivesAnyBytes) {
  std::mt19937 random(4);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    DecodeChunk(bytes, [](uint32_t index, const aggregate::Cell&) {
      ASSERT_LT(index, kChunkSeries);
    });
  }
}

}  // namespace
}  // namespace lull::storage
