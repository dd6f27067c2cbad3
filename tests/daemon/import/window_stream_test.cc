#include "daemon/import/window_stream.h"

#include <gtest/gtest.h>
#include <rapidjson/reader.h>

#include <random>
#include <string>

namespace lull::imports {
namespace {

// RapidJSON's own: byte by byte.
size_t Slowly(const std::string& text) {
  rapidjson::StringStream stream(text.c_str());
  rapidjson::SkipWhitespace(stream);
  return stream.Tell();
}

TEST(WindowStreamTest, SkipsWhatRapidJsonSkips) {
  std::mt19937 random(1);
  const std::string bytes = "   \n\r\t x\"{\v\f\x1f\x21\xa0\xff";
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random() % 30, ' ');
    const size_t others = random() % 4;
    for (size_t n = 0; n < others && !text.empty(); ++n) {
      text[random() % text.size()] = bytes[random() % bytes.size()];
    }
    // The longer ones lie on the heap, where a sanitizer sees what is read beyond.
    WindowStream stream{std::string_view(text)};
    SkipWhitespace(stream);
    ASSERT_EQ(stream.Tell(), Slowly(text)) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace lull::imports
