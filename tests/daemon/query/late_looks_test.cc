#include "daemon/query/late_looks.h"

#include <gtest/gtest.h>

#include "query.pb.h"

namespace lull::query {
namespace {

void Set(v1::SampledShare* share, double percent, double low, double high) {
  share->set_percent(percent);
  share->set_low_percent(low);
  share->set_high_percent(high);
}

// Of 100 looks 10 were late. A line of 20 % may have got 2 of them from others, and
// others 8 of its own.
TEST(LateLooks, MayBelongToAnyLine) {
  v1::Hot hot;
  Set(hot.add_lines()->mutable_total(), 20, 15, 26);
  Set(hot.mutable_lines(0)->mutable_self(), 99, 95, 99.5);
  WidenForLateLooks(0.1, &hot);
  EXPECT_DOUBLE_EQ(hot.lines(0).total().percent(), 20);
  EXPECT_DOUBLE_EQ(hot.lines(0).total().low_percent(), 13);
  EXPECT_DOUBLE_EQ(hot.lines(0).total().high_percent(), 34);
  EXPECT_DOUBLE_EQ(hot.lines(0).self().low_percent(), 95 - 9.9);
  EXPECT_DOUBLE_EQ(hot.lines(0).self().high_percent(), 99.6);
}

TEST(LateLooks, DoNotTouchWhatIsExact) {
  v1::Hot hot;
  Set(hot.add_lines()->mutable_total(), 20, 20, 20);
  WidenForLateLooks(0.1, &hot);
  EXPECT_DOUBLE_EQ(hot.lines(0).total().low_percent(), 20);
  EXPECT_DOUBLE_EQ(hot.lines(0).total().high_percent(), 20);
}

// Rows within rows.
TEST(LateLooks, AreOfEveryShare) {
  v1::Gaps gaps;
  Set(gaps.add_gaps()->add_doing()->mutable_own(), 50, 40, 60);
  WidenForLateLooks(0.02, &gaps);
  EXPECT_DOUBLE_EQ(gaps.gaps(0).doing(0).own().low_percent(), 39);
  EXPECT_DOUBLE_EQ(gaps.gaps(0).doing(0).own().high_percent(), 61);
}

}  // namespace
}  // namespace lull::query
