// Where `lulld --clickhouse` writes to.
#include <gtest/gtest.h>

#include <string>

#include "daemon/fleet/clickhouse.h"

namespace lull::fleet {
namespace {

ClickHouseTarget TargetOf(const std::string& url) {
  auto target = FindClickHouseTarget(url, [](const char* name) {
    return std::string(name) == "CLICKHOUSE_USER" ? "me" : "";
  });
  EXPECT_TRUE(target.ok()) << target.status();
  return target.ok() ? *std::move(target) : ClickHouseTarget();
}

TEST(ClickHouseTarget, HasDefaultsOfClickHouse) {
  const ClickHouseTarget target = TargetOf("http://host");
  EXPECT_EQ(target.peer.url(), "http://host:8123");
  EXPECT_EQ(target.database, "default");
  EXPECT_EQ(target.user, "me");
  EXPECT_EQ(target.password, "");
}

TEST(ClickHouseTarget, IsWhatTheUrlSays) {
  const ClickHouseTarget target = TargetOf("http://[::1]:99/?database=lull_2");
  EXPECT_EQ(target.peer.url(), "http://[::1]:99");
  EXPECT_EQ(target.database, "lull_2");
}

}  // namespace
}  // namespace lull::fleet
