// How a collector of a fleet says where it is reached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/host_name.h"
#include "tests/daemon/collector/serve/parsed_options.h"

namespace lull {
namespace {

// Of `listen`, and `advertise` where that is not "".
absl::StatusOr<std::string> Advertised(const std::string& listen,
                                       const std::string& advertise = "") {
  const std::string database = ::testing::TempDir() + "advertise.db";
  std::vector<const char*> arguments = {
      "--listen",     listen.c_str(),           "--database",          database.c_str(),
      "--clickhouse", "http://127.0.0.1:65535", "--insecure-plain-tcp"};
  if (!advertise.empty()) {
    arguments.insert(arguments.end(), {"--advertise", advertise.c_str()});
  }
  auto config = collector::Configure(test::Parsed(arguments));
  if (!config.ok()) return config.status();
  return config->fleet->collector;
}

TEST(AdvertiseTest, IsWhatIsListenedToWhereOthersReachThat) {
  EXPECT_EQ(*Advertised("192.0.2.7:4317"), "192.0.2.7:4317");
  EXPECT_EQ(*Advertised("[2001:db8::7]:4317"), "[2001:db8::7]:4317");
  for (const char* any : {"0.0.0.0:4317", "[::]:4317"}) {
    EXPECT_EQ(*Advertised(any), absl::StrCat(HostName(), ":4317"));
  }
}

TEST(AdvertiseTest, IsTheHostAloneWhereNobodyElseDoes) {
  for (const char* here : {"127.0.0.1:4317", "[::1]:4317", "localhost:4317",
                           "unix:/tmp/collector.sock", "192.0.2.7:0"}) {
    EXPECT_EQ(*Advertised(here), HostName()) << here;
  }
}

TEST(AdvertiseTest, IsWhatTheUserSays) {
  EXPECT_EQ(*Advertised("0.0.0.0:4317", "node7.cluster:4318"), "node7.cluster:4318");
  EXPECT_EQ(*Advertised("unix:/tmp/collector.sock", "[::1]:1"), "[::1]:1");
  for (const char* none : {"node7", "node7:0", "node7:http", ":4317", "::1:4317",
                           "0.0.0.0:4317", "[::]:4317", "a b:1", "x\x1b[31m:80"}) {
    EXPECT_THAT(Advertised("0.0.0.0:4317", none).status().message(),
                ::testing::HasSubstr("give HOST:PORT"))
        << none;
  }
}

}  // namespace
}  // namespace lull
