#include "daemon/relay/samples/layout.h"

#include <gtest/gtest.h>

#include <functional>

#include "preload/stacks/layouts/cpython_3_11.h"
#include "preload/stacks/layouts/cpython_3_8.h"

namespace lull::relay {
namespace {

constexpr uint64_t kType = 0x7f0000001000;

TEST(FrameLayout, CoversAllThatIsRead) {
  auto layout = FrameLayout::Of(kCPython311, kType);
  ASSERT_TRUE(layout.has_value());
  EXPECT_TRUE(layout->chunks);
  EXPECT_EQ(layout->thread.low, 56);
  EXPECT_EQ(layout->thread.size, 296 + 8 - 56);
  EXPECT_EQ(layout->frame.low, 32);
  EXPECT_EQ(layout->frame.size, 69 + 1 - 32);
  auto older = FrameLayout::Of(kCPython38, kType);
  ASSERT_TRUE(older.has_value());
  EXPECT_FALSE(older->chunks);
  EXPECT_EQ(older->frame.size, 116 + 1 - 24) << "to f_executing";
}

TEST(FrameLayout, IsRefusedWhereNoInterpreterLooksLikeThat) {
  EXPECT_FALSE(FrameLayout::Of(kCPython311, 0).has_value());
  EXPECT_FALSE(FrameLayout::Of(kCPython311, kType + 1).has_value());
  using Change = std::function<void(abi::PythonLayout&)>;
  const Change changes[] = {
      [](auto& l) { l.tstate_frame = -8; },
      [](auto& l) { l.tstate_thread_id = 32767; },
      [](auto& l) { l.tstate_chunk = 5000; },
      [](auto& l) { l.cframe_frame = 5000; },
      [](auto& l) { l.frame_previous = -1; },
      [](auto& l) { l.frame_owner = 5000; },
      [](auto& l) { l.code_name = -1; },
      [](auto& l) { l.str_state = -1; },
      [](auto& l) { l.str_ascii_size = -1; },
      [](auto& l) { l.str_length = 4000; },  // behind the text
      [](auto& l) { l.str_compact_size = 0; },
      [](auto& l) { l.str_ascii_size = 5000; },
      [](auto& l) { l.bytes_data = l.bytes_size; },
      [](auto& l) { l.minor = 7; },
      [](auto& l) { l.form = static_cast<abi::InstructionForm>(9); },
  };
  for (const Change& change : changes) {
    abi::PythonLayout layout = kCPython311;
    change(layout);
    EXPECT_FALSE(FrameLayout::Of(layout, kType).has_value()) << &change - changes;
  }
}

}  // namespace
}  // namespace lull::relay
