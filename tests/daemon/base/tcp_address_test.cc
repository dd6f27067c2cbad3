#include "daemon/base/tcp_address.h"

#include <gtest/gtest.h>

namespace lull {
namespace {

TEST(TcpAddress, HasAHostAndAPort) {
  EXPECT_EQ(ParseTcpAddress("node7:4317")->text(), "node7:4317");
  EXPECT_EQ(ParseTcpAddress("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseTcpAddress("[::1]:0")->text(), "[::1]:0");
  for (const char* text : {"", "4317", "host", "host:", ":1", "host:99999", "host:x",
                           "::1:4317", "[]:1", "[::1]"}) {
    EXPECT_FALSE(ParseTcpAddress(text)) << text;
  }
}

TEST(OnThisHost, IsTrueOfLoopbackAlone) {
  for (const char* text : {"127.0.0.1:1", "127.8.9.1:1", "[::1]:1",
                           "[::ffff:127.0.0.1]:1", "localhost:1"}) {
    EXPECT_TRUE(OnThisHost(*ParseTcpAddress(text))) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "192.0.2.1:1",
                           "[::ffff:10.0.0.1]:1", "[2001:db8::1]:1"}) {
    EXPECT_FALSE(OnThisHost(*ParseTcpAddress(text))) << text;
  }
}

// The names that look local are the ones that would deceive.
TEST(OnThisHost, IsFalseOfANameThatCannotBeResolved) {
  for (const char* text : {"127.0.0.1.invalid:1", "localhost.invalid:1"}) {
    EXPECT_FALSE(OnThisHost(*ParseTcpAddress(text))) << text;
  }
}

TEST(OnThisHost, TellsTheAddressByNumber) {
  EXPECT_EQ(OnThisHost({"127.0.0.1", "4317"})->text(), "127.0.0.1:4317");
  EXPECT_EQ(OnThisHost({"::1", "4317"})->text(), "[::1]:4317");
  std::string local = OnThisHost({"localhost", "4317"})->text();
  EXPECT_TRUE(local == "127.0.0.1:4317" || local == "[::1]:4317") << local;
}

}  // namespace
}  // namespace lull
