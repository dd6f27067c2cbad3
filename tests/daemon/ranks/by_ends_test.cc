#include "daemon/ranks/by_ends.h"

#include <gtest/gtest.h>

namespace lull::ranks {
namespace {

TEST(SpreadOfEnds, IsTheLargest) {
  EXPECT_EQ(SpreadOfEnds({{{0, 1000, 1}, {2000, 3000, 2}},
                          {{900, 1003, 1}, {2900, 2995, 2}},
                          {{500, 1001, 1}, {2000, 3002, 2}}}),
            7u);
}

TEST(SpreadOfEnds, IsOfNothingWhereRanksDoNotDoTheSame) {
  EXPECT_FALSE(SpreadOfEnds({{{0, 10, 1}}, {{0, 10, 1}, {20, 30, 1}}}));
  EXPECT_FALSE(SpreadOfEnds({{{0, 10, 1}}, {{0, 10, 2}}}));
  EXPECT_FALSE(SpreadOfEnds({{}, {}}));
}

// Kernels of different groups, or of different steps, do not end together.
TEST(SpreadOfEnds, IsLargeWhereTheyDoNotBelongTogether) {
  EXPECT_EQ(SpreadOfEnds({{{0, 1000, 1}}, {{5000, 6000, 1}}}), 5000u);
}

}  // namespace
}  // namespace lull::ranks
