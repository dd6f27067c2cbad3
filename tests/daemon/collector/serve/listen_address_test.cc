#include "daemon/collector/serve/listen_address.h"

#include <gtest/gtest.h>

namespace lull::collector {
namespace {

TEST(ListenAddress, UnderstandsSocketsAndPorts) {
  EXPECT_EQ(ParseListenAddress("unix:/run/a.sock")->unix_path, "/run/a.sock");
  EXPECT_EQ(ParseListenAddress("unix:///run/a.sock")->unix_path, "/run/a.sock");
  EXPECT_EQ(ParseListenAddress("0.0.0.0:50051")->tcp.text(), "0.0.0.0:50051");
  EXPECT_EQ(ParseListenAddress("[::1]:0")->tcp.text(), "[::1]:0");
  EXPECT_EQ(ParseListenAddress("node7:50051")->tcp.host, "node7");
}

TEST(ListenAddress, RefusesWhatIsNeither) {
  for (const char* text : {"", "50051", "host", "host:", ":50051", "host:99999",
                           "host:x", "unix:", "unix:relative", "::1:50051", "[]:1"}) {
    EXPECT_EQ(ParseListenAddress(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(200, 'p')).ok());
}

}  // namespace
}  // namespace lull::collector
