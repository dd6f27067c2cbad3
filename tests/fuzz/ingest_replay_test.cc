// The ingest fuzz target without a fuzzer: the same seeds, mutated the same way, each
// time. A finding ends the program.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/fuzz/ingest_inputs.h"

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
    for (int i = 0; i < 1500; ++i) {
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
