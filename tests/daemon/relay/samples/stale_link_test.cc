// A word that leads to frames is read after its call returned: in one copy it holds
// something else.
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/relay/samples/codes.h"
#include "daemon/relay/samples/reader.h"
#include "preload/stacks/layouts/cpython_3_10.h"
#include "preload/stacks/layouts/cpython_3_11.h"
#include "preload/stacks/layouts/cpython_3_12.h"
#include "preload/stacks/layouts/cpython_3_8.h"
#include "tests/daemon/relay/samples/fake_python.h"

namespace lull::relay {
namespace {

constexpr size_t kFrames = 12;

// Of every three copies, the second has another value at one address.
class StaleWord : public TargetMemory {
 public:
  StaleWord() : TargetMemory(getpid(), nullptr) {}

  void Spoil(uint64_t address, uint64_t value) {
    address_ = address;
    value_ = value;
  }

  using TargetMemory::Read;
  size_t Read(std::span<const Piece> pieces, char* out) override {
    int copy = 0;
    for (const Piece& piece : pieces) {
      memcpy(out, reinterpret_cast<const void*>(piece.address), piece.size);
      const bool has = address_ >= piece.address &&
                       address_ + sizeof(value_) <= piece.address + piece.size;
      if (has && ++copy % 3 == 2) {
        memcpy(out + (address_ - piece.address), &value_, sizeof(value_));
      }
      out += piece.size;
    }
    return pieces.size();
  }

 private:
  uint64_t address_ = 0, value_ = 0;
};

class StaleLink : public ::testing::TestWithParam<abi::PythonLayout> {
 protected:
  StaleLink() : python_(GetParam()) {
    for (size_t i = 0; i < kFrames; ++i) {
      const auto line = static_cast<int32_t>(i);
      stack_.emplace_back(python_.AddCode("f" + std::to_string(i), "f.py", line), 2);
    }
    python_.SetStack(stack_);
  }

  void ExpectAllFrames() {
    CodeBook codes(python_.layout());
    StackReader reader(python_.layout(), python_.state(), python_.thread());
    for (int i = 0; i < 3; ++i) {
      const Look look = reader.Take(&memory_, &codes);
      ASSERT_EQ(look.frames.size(), kFrames);
      const uint32_t name = codes.NameOf(look.frames[3].number);
      EXPECT_EQ(codes.Name(name).function, "f3");
    }
  }

  FakePython python_;
  std::vector<std::pair<uint64_t, int32_t>> stack_;
  StaleWord memory_;
};

TEST_P(StaleLink, ToNothingIsNoStack) {
  memory_.Spoil(python_.link(), 0);
  ExpectAllFrames();
}

TEST_P(StaleLink, ThatIsNoAddressIsNoStack) {
  memory_.Spoil(python_.link(), 0x123);
  ExpectAllFrames();
}

TEST_P(StaleLink, ToMemoryThatIsNoFrameIsNoStack) {
  memory_.Spoil(python_.link(), python_.layout().code_type);
  ExpectAllFrames();
}

TEST_P(StaleLink, ToAnEarlierFrameWithoutItsCallersIsNoStack) {
  memory_.Spoil(
      python_.frame(kFrames / 2) + static_cast<uint64_t>(GetParam().frame_previous), 0);
  ExpectAllFrames();
}

TEST_P(StaleLink, OfAThreadWithoutPythonIsNone) {
  StackReader reader(python_.layout(), python_.AddThread(), python_.thread());
  CodeBook codes(python_.layout());
  EXPECT_EQ(reader.Take(&memory_, &codes).quality, v1::HOST_SAMPLE_QUALITY_NO_STATE);
}

INSTANTIATE_TEST_SUITE_P(CPython, StaleLink,
                         ::testing::Values(kCPython311, kCPython312),
                         [](const auto& info) {
                           return "3_" + std::to_string(info.param.minor);
                         });

// Where frames are used again for other calls, what was copied of two calls may lead
// from one to the other and back: that has no end, and no frame in common with others.
class StaleCaller : public StaleLink {};

TEST_P(StaleCaller, ThatLeadsInCirclesIsNoStack) {
  memory_.Spoil(
      python_.frame(kFrames - 2) + static_cast<uint64_t>(GetParam().frame_previous),
      python_.frame(1));
  ExpectAllFrames();
}

INSTANTIATE_TEST_SUITE_P(CPython, StaleCaller,
                         ::testing::Values(kCPython38, kCPython310, kCPython311,
                                           kCPython312),
                         [](const auto& info) {
                           return "3_" + std::to_string(info.param.minor);
                         });

// A generator that yielded, or a function that returned, of which nothing was seen
// while it ran: that it has no caller does not make it the outermost frame.
class StaleFrame : public StaleLink {};

TEST_P(StaleFrame, ThatRunsNoMoreIsNoStack) {
  python_.SetStack({{python_.AddCode("generator", "f.py", 1), 2}});
  const uint64_t frame = python_.frame(0);
  char* const state = reinterpret_cast<char*>(frame) + python_.layout().frame_state;
  *state = static_cast<char>(*state == 0);
  python_.SetStack(stack_);
  memory_.Spoil(python_.state() + static_cast<uint64_t>(GetParam().tstate_frame),
                frame);
  ExpectAllFrames();
}

INSTANTIATE_TEST_SUITE_P(CPython, StaleFrame,
                         ::testing::Values(kCPython38, kCPython310),
                         [](const auto& info) {
                           return "3_" + std::to_string(info.param.minor);
                         });

TEST(Roots, AreTheFirstFramesOfFirstChunks) {
  uint64_t first[8] = {}, second[8] = {}, third[8] = {};
  auto at = [](const uint64_t* chunk) { return reinterpret_cast<uint64_t>(chunk); };
  second[0] = at(first);
  third[0] = at(second);
  TargetMemory memory(getpid(), nullptr);
  Roots roots;
  EXPECT_EQ(roots.Of(at(first), &memory), at(first) + 32);
  EXPECT_EQ(roots.Of(at(third), &memory), at(first) + 32);
  first[0] = at(third);
  EXPECT_EQ(roots.Of(at(second), &memory), 0u) << "there is no end";
  EXPECT_EQ(roots.Of(8, &memory), 0u);
}

}  // namespace
}  // namespace lull::relay
