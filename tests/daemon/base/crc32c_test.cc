#include "daemon/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace lull {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, AgreesWithTheVectorsOfIscsi) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(Crc32c, CanBeTakenInPieces) {
  std::string text = "a record that is written in two pieces";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32c(text.substr(cut), Crc32c(text.substr(0, cut))), Crc32c(text));
  }
}

}  // namespace
}  // namespace lull
