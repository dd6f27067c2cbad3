// The ingest fuzz target without a fuzzer: the same seeds, mutated the same way, each
// time. A finding ends the program.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/fuzz/ingest_inputs.h"
#include "tests/trials.h"

namespace lull::collector {
namespace {

TEST(IngestReplay, TakesItsSeeds) {
  for (const auto& seed : IngestSeeds())
    EXPECT_TRUE(FuzzIngest(seed.SerializeAsString()));
}

TEST(IngestReplay, SurvivesMessagesWithSpoiltFields) {
  std::mt19937_64 random(2);
  int taken = 0, refused = 0;
  for (const auto& seed : IngestSeeds()) {
    for (int i = 0; i < Trials(1500, 700); ++i) {
      lull::v1::IngestRequest request = seed;
      for (size_t changes = 1 + random() % 6; changes > 0; --changes) {
        MutateMessage(request, random);
      }
      (FuzzIngest(request.SerializeAsString()) ? taken : refused) += 1;
    }
  }
  EXPECT_GT(taken, 100) << "too little gets past validation";
  EXPECT_GT(refused, 100);
}

// Sizes that no memory has, of which sums overflow; drawn and not, freed and not.
TEST(IngestReplay, SurvivesBlocksOfAnySize) {
  for (const uint64_t bytes :
       {uint64_t{1} << 62, (uint64_t{1} << 63) - 1, uint64_t{1} << 63, ~uint64_t{0}}) {
    lull::v1::IngestRequest request = IngestSeeds()[1];
    for (lull::v1::RingBatch& ring : *request.mutable_batch()->mutable_rings()) {
      lull::v1::EventColumns& events = *ring.mutable_events();
      for (int i = 0; i < events.type_size(); ++i) {
        events.set_type(i, i % 5 == 0   ? v1::EVENT_TYPE_TORCH_RESERVED
                           : i % 2 == 0 ? v1::EVENT_TYPE_TORCH_MEMORY
                                        : v1::EVENT_TYPE_DEVICE_MEMORY);
        events.set_flags(i, i % 7 == 6 ? 1 : i % 3 == 0 ? 4 : 0);
        events.set_arg0(i, static_cast<uint64_t>(i % 7 == 6 ? i - 1 : i) + 1);
        events.set_arg1(i, bytes);
      }
    }
    EXPECT_TRUE(FuzzIngest(request.SerializeAsString()));
  }
}

TEST(IngestReplay, SurvivesSpoiltBytes) {
  std::mt19937_64 random(3);
  for (const auto& seed : IngestSeeds()) {
    const std::string good = seed.SerializeAsString();
    for (int i = 0; i < 2000; ++i) {
      std::string bytes = good;
      for (size_t changes = 1 + random() % 6; changes > 0; --changes) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      if (i % 5 == 0) bytes.resize(random() % bytes.size());
      FuzzIngest(bytes);
    }
  }
}

}  // namespace
}  // namespace lull::collector
