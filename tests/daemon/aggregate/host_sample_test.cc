#include "daemon/aggregate/host_sample.h"

#include <gtest/gtest.h>

#include "daemon/aggregate/accumulate.h"

namespace lull::aggregate {
namespace {

Series Of(uint8_t variant) {
  return {.type = EventType::kHostSample, .variant = variant};
}

uint8_t VariantOf(uint64_t state, uint64_t quality, uint32_t role) {
  Event event;
  SampleView{event}.set_look(state, quality).set_role(role);
  return SampleVariant(event);
}

TEST(SampleVariant, HoldsRoleStateAndQuality) {
  for (uint32_t role = 0; role < kSampleRoles; ++role) {
    for (uint64_t state = 0; state < 3; ++state) {
      for (uint64_t quality = 0; quality < 5; ++quality) {
        uint8_t variant = VariantOf(state, quality, role);
        EXPECT_EQ(static_cast<uint32_t>(RoleOf(Of(variant))), role);
        EXPECT_EQ(static_cast<uint64_t>(StateOf(Of(variant))), state);
        EXPECT_EQ(static_cast<uint64_t>(QualityOf(Of(variant))), quality);
      }
    }
  }
}

TEST(SampleVariant, OfWhatIsNotKnownClaimsNothing) {
  uint8_t variant = VariantOf(7, 9, 1000);
  EXPECT_EQ(RoleOf(Of(variant)), SampleRole::kOther);
  EXPECT_EQ(QualityOf(Of(variant)), SampleQuality::kFailed);
  EXPECT_NE(StateOf(Of(variant)), SampleState::kRunning);
  EXPECT_NE(StateOf(Of(variant)), SampleState::kReady);
  EXPECT_NE(StateOf(Of(variant)), SampleState::kBlocked);
}

// `n` samples of 5 ms.
Sampled Samples(uint64_t n) {
  return {n, n * 5'000'000, n * SquareOfWeight(5'000'000)};
}

TEST(ShareOf, HasWilsonsInterval) {
  // By hand, of 30 in 100: centre 0.30740, half 0.08837.
  Share share = ShareOf(Samples(30), Samples(100));
  EXPECT_DOUBLE_EQ(share.percent, 30);
  EXPECT_NEAR(share.low, 21.895, 0.005);
  EXPECT_NEAR(share.high, 39.585, 0.005);
  // Wilson's interval is one where the ordinary one is a point.
  share = ShareOf(Samples(0), Samples(30));
  EXPECT_EQ(share.percent, 0);
  EXPECT_EQ(share.low, 0);
  EXPECT_NEAR(share.high, 11.352, 0.005);
  share = ShareOf(Samples(30), Samples(30));
  EXPECT_NEAR(share.low, 88.648, 0.005);
  EXPECT_EQ(share.high, 100);
}

TEST(ShareOf, NothingIsNothing) {
  Share share = ShareOf({}, {});
  EXPECT_EQ(share.percent, 0);
  EXPECT_EQ(share.high, 0);
}

TEST(ShareOf, IsOfTimeAndKnowsLessWhereSamplesWeighDifferently) {
  Sampled dense = Samples(100);
  Sampled sparse{10, 10 * 100'000'000ULL, 10 * SquareOfWeight(100'000'000)};
  Sampled whole = dense;
  whole += sparse;
  Share share = ShareOf(dense, whole);
  EXPECT_DOUBLE_EQ(share.percent, 100.0 / 3);
  // 110 samples, but the 10 heavy ones decide: n = 1.5 s squared by 0.1025 s squared.
  Share same = ShareOf(Samples(5), Samples(15));
  EXPECT_GT(share.high - share.low, 0.75 * (same.high - same.low));
  EXPECT_LT(share.high - share.low, same.high - same.low);
}

TEST(Cells, AddUpWhatSamplesStandFor) {
  Series series;
  series.type = EventType::kHostSample;
  Cell first, second;
  Event event;
  SampleView{event}.set_weight_ns(5'000'000);
  AddEvent(series, event, first);
  SampleView{event}.set_weight_ns(100'000'000);
  AddEvent(series, event, second);
  AddEvent(series, event, second);
  first.Append(second);
  Sampled sampled = SampledOf(first);
  EXPECT_EQ(sampled.samples, 3u);
  EXPECT_EQ(sampled.time_ns, 205'000'000u);
  EXPECT_EQ(sampled.square_us, 5'000u * 5'000u + 2 * 100'000ULL * 100'000ULL);
}

}  // namespace
}  // namespace lull::aggregate
