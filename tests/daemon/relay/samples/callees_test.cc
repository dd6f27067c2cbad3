#include "daemon/relay/samples/callees.h"

#include <gtest/gtest.h>

namespace lull::relay {
namespace {

TEST(Callees, KnowsFramesOfTheLastLooks) {
  Callees callees;
  EXPECT_FALSE(callees.Has(0x1000));
  callees.Add(0x1000);
  EXPECT_TRUE(callees.Has(0x1000));
  EXPECT_FALSE(callees.Has(0x2000));
  for (int look = 0; look < 64; ++look) callees.NextLook();
  EXPECT_TRUE(callees.Has(0x1000));
  callees.NextLook();
  EXPECT_FALSE(callees.Has(0x1000)) << "another frame may lie there by now";
  callees.Add(0x1000);
  EXPECT_TRUE(callees.Has(0x1000));
}

TEST(Callees, KeepsTheNewest) {
  Callees callees;
  for (uint64_t i = 1; i <= 1000; ++i) {
    callees.NextLook();
    callees.Add(i << 12);
  }
  EXPECT_TRUE(callees.Has(uint64_t{1000} << 12));
  EXPECT_TRUE(callees.Has(uint64_t{937} << 12));
  EXPECT_FALSE(callees.Has(uint64_t{900} << 12));
}

}  // namespace
}  // namespace lull::relay
