#include "daemon/import/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>

#include "tests/daemon/storage/temporary_directory.h"

namespace lull::imports {
namespace {

// One member of a gzip file.
std::string Packed(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Several pieces of the unpacker, and some that hardly pack.
std::string Text(size_t bytes) {
  std::mt19937 random(7);
  std::string text(bytes, 'a');
  for (size_t i = 0; i < bytes; i += 1 + random() % 5) {
    text[i] = static_cast<char>(random());
  }
  return text;
}

std::string AllOf(Input& input) {
  std::string text;
  for (int byte = input.Take(); byte >= 0; byte = input.Take()) {
    text += static_cast<char>(byte);
    const std::string_view window = input.Window();
    EXPECT_EQ(window.data()[window.size()], '\0');
    const size_t more = std::min<size_t>(window.size(), 100'000);
    text += window.substr(0, more);
    input.Skip(more);
    EXPECT_EQ(input.offset(), text.size());
  }
  return text;
}

TEST(InputTest, ReadsWhatIsNotPacked) {
  const std::string text = Text(1'000'000);
  auto input = Input::OfBytes(text);
  EXPECT_TRUE(AllOf(*input) == text);
  EXPECT_TRUE(input->status().ok()) << input->status();
  EXPECT_EQ(AllOf(*Input::OfBytes("")), "");
}

TEST(InputTest, UnpacksMembersThatFollowEachOther) {
  const std::string text = Text(3'000'000);
  auto input = Input::OfBytes(Packed(text) + Packed("") + Packed("and more"));
  EXPECT_TRUE(AllOf(*input) == text + "and more");
  EXPECT_TRUE(input->status().ok()) << input->status();
  EXPECT_EQ(input->Take(), -1);
}

TEST(InputTest, AFileThatIsCutShortIsToldBehindAllThatIsWhole) {
  const std::string text = Text(2'000'000);
  const std::string packed = Packed(text);
  auto input = Input::OfBytes(packed.substr(0, packed.size() / 2));
  const std::string read = AllOf(*input);
  EXPECT_GT(read.size(), text.size() / 4);
  EXPECT_TRUE(text.compare(0, read.size(), read) == 0);
  EXPECT_EQ(input->status(), absl::DataLossError("the gzip file is cut short"));
  EXPECT_EQ(input->Peek(), -1);
}

TEST(InputTest, SaysOfADamagedFileThatItIsOne) {
  const std::string text = Text(2'000'000);
  std::string packed = Packed(text);
  packed[packed.size() / 2] ^= 0x40;
  auto damaged = Input::OfBytes(packed);
  AllOf(*damaged);
  EXPECT_EQ(damaged->status().code(), absl::StatusCode::kDataLoss);
  // What follows a file that is packed is another one.
  auto followed = Input::OfBytes(Packed(text) + "no gzip");
  EXPECT_TRUE(AllOf(*followed) == text);
  EXPECT_THAT(std::string(followed->status().message()),
              testing::StartsWith("the gzip file is damaged"));
}

TEST(InputTest, MayBeLeftInTheMiddle) {
  for (size_t bytes : {0, 1, 300'000, 900'000}) {
    auto input = Input::OfBytes(Packed(Text(8'000'000)));
    for (size_t i = 0; i < bytes; ++i) input->Take();
  }
}

class InputOfAFile : public testing::Test {
 protected:
  std::string File(const std::string& bytes) {
    const std::string path = directory_ / "file";
    std::ofstream(path) << bytes;
    return path;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(InputOfAFile, TellsHowFarItIs) {
  const std::string text = Text(2'000'000);
  for (const std::string& bytes : {text, Packed(text)}) {
    uint64_t last = 0, whole = 0;
    auto input = Input::Open(File(bytes), [&](uint64_t read, uint64_t all) {
      EXPECT_GE(read, last);
      last = read;
      whole = all;
      return true;
    });
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_TRUE(AllOf(**input) == text);
    EXPECT_EQ(last, bytes.size());
    EXPECT_EQ(whole, bytes.size());
  }
}

TEST_F(InputOfAFile, IsReadNoFurtherThanItsReaderWants) {
  const std::string text = Text(4'000'000);
  for (const std::string& bytes : {text, Packed(text)}) {
    auto input = Input::Open(
        File(bytes), [](uint64_t read, uint64_t all) { return read < all / 2; });
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_LT(AllOf(**input).size(), text.size());
    EXPECT_EQ((*input)->status().code(), absl::StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace lull::imports
