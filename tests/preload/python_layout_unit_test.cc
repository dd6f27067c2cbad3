// The tables behind python_frames.cc that no interpreter on this machine may
// exercise: CPython's own offsets table, and every form of str.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "preload/stacks/layouts/cpython_3_11.h"
#include "preload/stacks/layouts/debug_offsets.h"
#include "preload/stacks/python_objects.h"

namespace lull {
namespace {

// A table whose every offset is 8 times its own word number: whatever is read
// tells from where it was read.
std::vector<uint64_t> numbered_table(uint64_t version, bool free_threaded = false) {
  std::vector<uint64_t> table(128);
  for (size_t i = 0; i < table.size(); ++i) table[i] = 8 * i;
  memcpy(table.data(), "xdebugpy", 8);
  table[1] = version;
  table[2] = free_threaded;
  return table;
}

constexpr uint64_t k313 = 0x030d01f0;  // 3.13.1
constexpr uint64_t k314 = 0x030e00f0;  // 3.14.0
constexpr uint64_t k315 = 0x030f00f0;  // 3.15.0

TEST(DebugOffsets, ReadsTheTableOf313) {
  CPythonLayout layout;
  ASSERT_TRUE(layout_from_debug_offsets(numbered_table(k313).data(), &layout));
  // Words before: 3 prologue, 3 runtime, 13 interpreter, then thread_state.
  EXPECT_EQ(layout.minor, 13);
  EXPECT_EQ(layout.tstate_frame, 8 * (19 + 4));
  EXPECT_EQ(layout.frame_previous, 8 * (28 + 1));
  EXPECT_EQ(layout.frame_owner, 8 * (28 + 5));
  EXPECT_EQ(layout.code_filename, 8 * (34 + 1));
  EXPECT_EQ(layout.code_bytes, 8 * (34 + 9));
  EXPECT_EQ(layout.object_type, 8 * (44 + 1));
  EXPECT_EQ(layout.bytes_data, 8 * (64 + 2));
  EXPECT_EQ(layout.str_length, 8 * (67 + 2));
  EXPECT_EQ(layout.str_ascii_size, 8 * (67 + 3));
  EXPECT_EQ(layout.code_tag_mask, 0);
}

TEST(DebugOffsets, ReadsTheTableOf314WhichHasMoreFields) {
  CPythonLayout layout;
  ASSERT_TRUE(layout_from_debug_offsets(numbered_table(k314).data(), &layout));
  EXPECT_EQ(layout.minor, 14);
  EXPECT_EQ(layout.tstate_frame, 8 * (22 + 4));
  EXPECT_EQ(layout.frame_previous, 8 * (31 + 1));
  EXPECT_EQ(layout.code_filename, 8 * (39 + 1));
  EXPECT_EQ(layout.object_type, 8 * (50 + 1));
  EXPECT_EQ(layout.bytes_data, 8 * (74 + 2));
  EXPECT_EQ(layout.str_length, 8 * (77 + 2));
  EXPECT_EQ(layout.code_tag_mask, 3);
}

TEST(DebugOffsets, ReadsTheTableOf315WhichHasYetMore) {
  CPythonLayout layout;
  ASSERT_TRUE(layout_from_debug_offsets(numbered_table(k315).data(), &layout));
  EXPECT_EQ(layout.minor, 15);
  EXPECT_EQ(layout.tstate_frame, 8 * (22 + 4));
  EXPECT_EQ(layout.frame_previous, 8 * (39 + 1));
  EXPECT_EQ(layout.code_filename, 8 * (47 + 1));
  EXPECT_EQ(layout.object_type, 8 * (58 + 1));
  EXPECT_EQ(layout.bytes_data, 8 * (86 + 2));
  EXPECT_EQ(layout.str_length, 8 * (89 + 2));
  EXPECT_EQ(layout.code_tag_mask, 3);
}

TEST(DebugOffsets, RefusesWhatItDoesNotKnow) {
  CPythonLayout layout;
  EXPECT_FALSE(layout_from_debug_offsets(numbered_table(0x031000f0).data(), &layout));
  EXPECT_FALSE(layout_from_debug_offsets(numbered_table(0x030c00f0).data(), &layout));
  EXPECT_FALSE(layout_from_debug_offsets(numbered_table(k313, true).data(), &layout));
  std::vector<uint64_t> table = numbered_table(k313);
  memcpy(table.data(), "xdebugpx", 8);
  EXPECT_FALSE(layout_from_debug_offsets(table.data(), &layout));
  table = numbered_table(k313);
  table[19 + 4] = 1 << 20;
  EXPECT_FALSE(layout_from_debug_offsets(table.data(), &layout));
}

// A compact str of 3.11 in memory of our own.
class FakeString {
 public:
  template <typename Character>
  FakeString(const std::basic_string<Character>& text, bool ascii) : memory_(64) {
    size_t length = text.size();
    uint32_t state = sizeof(Character) << 2 | 1 << 5 | uint32_t{ascii} << 6;
    char* base = reinterpret_cast<char*>(memory_.data());
    memcpy(base + kCPython311.str_length, &length, sizeof length);
    memcpy(base + kCPython311.str_state, &state, sizeof state);
    int data = ascii ? kCPython311.str_ascii_size : kCPython311.str_compact_size;
    memcpy(base + data, text.data(), length * sizeof(Character));
  }

  PythonText text() const {
    return python_text(kCPython311, reinterpret_cast<uintptr_t>(memory_.data()));
  }
  std::string utf8(size_t limit = 1000) const {
    std::string out(utf8_size(text(), limit), '?');
    write_utf8(text(), out.data(), out.size());
    return out;
  }

 private:
  std::vector<uint64_t> memory_;
};

TEST(PythonText, BecomesUtf8FromEveryForm) {
  EXPECT_EQ(FakeString(std::string("train.py"), true).utf8(), "train.py");
  EXPECT_EQ(FakeString(std::string("caf\xe9"), false).utf8(), "caf\u00e9");
  EXPECT_EQ(FakeString(std::u16string(u"\u65e5a\u672c"), false).utf8(),
            "\u65e5a\u672c");
  EXPECT_EQ(FakeString(std::u32string(U"\U0001d4d0b"), false).utf8(), "\U0001d4d0b");
}

TEST(PythonText, ReplacesWhatUtf8CannotSay) {
  EXPECT_EQ(FakeString(std::u16string{0xdcff, u'a'}, false).utf8(), "\ufffda");
  EXPECT_EQ(FakeString(std::u32string{0x7fffffff, U'a'}, false).utf8(), "\ufffda");
}

TEST(PythonText, IsCutBetweenCharacters) {
  FakeString text(std::u16string(u"\u65e5\u672c"), false);
  EXPECT_EQ(text.utf8(5), "\u65e5");
  EXPECT_EQ(text.utf8(6), "\u65e5\u672c");
  EXPECT_EQ(text.utf8(2), "");
}

TEST(PythonText, EndsWithASuffixInEveryForm) {
  EXPECT_TRUE(text_ends_with(FakeString(std::string("a/b.py"), true).text(), "/b.py"));
  EXPECT_FALSE(text_ends_with(FakeString(std::string("b.py"), true).text(), "/b.py"));
  EXPECT_TRUE(text_ends_with(FakeString(std::u16string(u"\u65e5/b.py"), false).text(),
                             "/b.py"));
  EXPECT_FALSE(text_ends_with(FakeString(std::u16string(u"\u65e5/c.py"), false).text(),
                              "/b.py"));
}

TEST(PythonText, IsUnreadableUnlessItIsCompact) {
  std::vector<uint64_t> legacy(16);
  uint32_t state = 1 << 2;
  memcpy(reinterpret_cast<char*>(legacy.data()) + kCPython311.str_state, &state, 4);
  EXPECT_EQ(python_text(kCPython311, reinterpret_cast<uintptr_t>(legacy.data())).kind,
            0u);
  EXPECT_EQ(python_text(kCPython311, 0).kind, 0u);
  EXPECT_EQ(utf8_size(python_text(kCPython311, 0), 100), 0u);
}

}  // namespace
}  // namespace lull
