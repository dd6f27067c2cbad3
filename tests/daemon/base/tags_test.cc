#include "daemon/base/tags.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace lull {
namespace {

TEST(Tag, IsAWordThatFitsIntoAListOfJobs) {
  for (const char* tag : {"a", "naive", "v1.2", "pr/123", "lr=0.1", "A_b-c", "x@y:z+1"})
    EXPECT_TRUE(IsTag(tag)) << tag;
  EXPECT_TRUE(IsTag(std::string(kMaxTagBytes, 'x')));
  for (const char* text : {"", "-a", "a b", "a,b", "a\nb", "a\"b", "n\xc3\xbc", "a<b"})
    EXPECT_FALSE(IsTag(text)) << text;
  EXPECT_FALSE(IsTag(std::string(kMaxTagBytes + 1, 'x')));
  EXPECT_FALSE(IsTag(std::string_view("a\0b", 3)));
  EXPECT_TRUE(AreTags(std::vector<std::string>(kMaxTags, "x")));
  EXPECT_FALSE(AreTags(std::vector<std::string>(kMaxTags + 1, "x")));
  EXPECT_FALSE(AreTags(std::vector<std::string>{"x", "a b"}));
}

}  // namespace
}  // namespace lull
