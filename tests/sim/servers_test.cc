#include "tests/sim/engine/servers.h"

#include <gtest/gtest.h>

namespace lull::sim {
namespace {

TEST(Servers, ServesOneAfterTheOther) {
  Servers servers(1);
  EXPECT_EQ(servers.reserve(100, 10, 0), 100);
  EXPECT_EQ(servers.reserve(100, 10, 0), 110);
  EXPECT_EQ(servers.reserve(115, 10, 0), 120);
  EXPECT_EQ(servers.reserve(200, 10, 0), 200);
}

TEST(Servers, ServesAsManyAtOnceAsThereAre) {
  Servers servers(2);
  EXPECT_EQ(servers.reserve(0, 10, 0), 0);
  EXPECT_EQ(servers.reserve(0, 20, 0), 0);
  EXPECT_EQ(servers.reserve(0, 10, 0), 10);
  EXPECT_EQ(servers.reserve(0, 10, 0), 20);
}

TEST(Servers, FitsShortWorkInBeforeWorkThatIsReadyLater) {
  Servers servers(1);
  EXPECT_EQ(servers.reserve(100, 50, 0), 100);
  EXPECT_EQ(servers.reserve(0, 100, 0), 0);
  EXPECT_EQ(servers.reserve(0, 1, 0), 150);
}

TEST(Servers, DoesNotSqueezeWorkIntoAGapThatIsTooShort) {
  Servers servers(1);
  EXPECT_EQ(servers.reserve(0, 10, 0), 0);
  EXPECT_EQ(servers.reserve(15, 10, 0), 15);
  EXPECT_EQ(servers.reserve(5, 6, 0), 25);
  EXPECT_EQ(servers.reserve(5, 5, 0), 10);
}

TEST(Servers, ForgetsThePastAndNothingElse) {
  Servers servers(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(servers.reserve(i * 10, 10, 0), i * 10);
  EXPECT_EQ(servers.reserve(990, 10, 990), 1000);
}

}  // namespace
}  // namespace lull::sim
