// What a target's memory, and what it says of its interpreter, may do to the relay.
#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/text.h"
#include "daemon/relay/samples/codes.h"
#include "daemon/relay/samples/rates.h"
#include "daemon/relay/samples/reader.h"
#include "daemon/relay/samples/stack_table.h"
#include "preload/stacks/layouts/cpython_3_10.h"
#include "preload/stacks/layouts/cpython_3_11.h"
#include "preload/stacks/layouts/cpython_3_12.h"
#include "preload/stacks/layouts/cpython_3_8.h"
#include "tests/daemon/relay/samples/fake_python.h"

namespace lull::relay {
namespace {

using Random = std::mt19937_64;

const abi::PythonLayout kFakedLayouts[] = {kCPython38, kCPython310, kCPython311,
                                           kCPython312};

// What is read of one process.
struct Readings {
  explicit Readings(const FrameLayout& layout, uint64_t state, uint64_t thread)
      : memory(getpid(), nullptr), codes(layout), reader(layout, state, thread) {}

  // Looks, names what it sees, and holds it against what the wire takes.
  Look Take() {
    Look look = reader.Take(&memory, &codes);
    EXPECT_LE(look.frames.size(), kMostFrames);
    stacks.Number(look, &codes);
    for (const lull::v1::StackDef& stack : stacks.TakeNew()) {
      EXPECT_LE(stack.frames_size(), static_cast<int>(kMostFrames));
      for (const auto& frame : stack.frames()) {
        EXPECT_LE(frame.function().size(), kMaxWireString);
        EXPECT_LE(frame.file().size(), kMaxWireString);
        EXPECT_EQ(CleanText(frame.function()), frame.function());
        EXPECT_GE(frame.line(), 0);
      }
    }
    return look;
  }

  TargetMemory memory;
  CodeBook codes;
  StackReader reader;
  StackTable stacks;
};

void FillWithSense(FakePython* python) {
  std::vector<std::pair<uint64_t, int32_t>> stack;
  for (int i = 0; i < 12; ++i) {
    stack.emplace_back(python->AddCode("function" + std::to_string(i), "/a/file.py",
                                       10 * i + 1, "\x02\x01\x02\x01"),
                       2 * i);
  }
  python->SetStack(stack);
}

TEST(HostileMemory, IsReadAsItIsWhereItMakesSense) {
  for (const abi::PythonLayout& layout : kFakedLayouts) {
    SCOPED_TRACE(layout.minor);
    FakePython python(layout);
    FillWithSense(&python);
    Readings readings(python.layout(), python.state(), python.thread());
    for (int i = 0; i < 3; ++i) {
      Look look = readings.Take();
      ASSERT_EQ(look.quality, v1::HOST_SAMPLE_QUALITY_EXACT);
      ASSERT_EQ(look.frames.size(), 12u);
      const CodeBook& codes = readings.codes;
      EXPECT_EQ(codes.Name(codes.NameOf(look.frames[3].number)).function, "function3");
    }
  }
}

uint64_t AnyWord(Random& random, const FakePython& python, const char* memory) {
  const auto base = reinterpret_cast<uint64_t>(memory);
  switch (random() % 8) {
    case 0:
      return 0;
    case 1:
      return random();
    case 2:
      return random() % 256;
    case 3:
      return UINT64_MAX - random() % 64;
    case 4:
      return 0x7ffffffff000 + random() % 8192;  // the end of user space
    case 5:
      return python.state();
    default:
      return base + random() % python.used() / 8 * 8;
  }
}

// Words of all that a walk reads are exchanged, one after the other: cycles, lengths of
// exabytes, objects in each other's middle. ASan sees what strays.
TEST(HostileMemory, LeadsNobodyAstray) {
  Random random(1);
  for (const abi::PythonLayout& layout : kFakedLayouts) {
    SCOPED_TRACE(layout.minor);
    for (int round = 0; round < 40; ++round) {
      FakePython python(layout);
      FillWithSense(&python);
      Readings readings(python.layout(), python.state(), python.thread());
      readings.Take();
      for (int look = 0; look < 40; ++look) {
        const uint64_t word = AnyWord(random, python, python.memory());
        const size_t at = random() % (python.used() - 8) / 8 * 8;
        memcpy(python.memory() + at, &word, sizeof(word));
        readings.Take();
      }
    }
  }
}

// A layout that was believed is one with which nothing can go wrong.
TEST(HostileMemory, IsReadByNoLayoutThatCannotBe) {
  Random random(2);
  int believed = 0;
  for (int round = 0; round < 3000; ++round) {
    abi::PythonLayout layout = kFakedLayouts[random() % 4];
    FakePython python(layout);
    FillWithSense(&python);
    auto* fields = reinterpret_cast<int16_t*>(&layout);
    for (uint64_t change = random() % 4 + 1; change > 0; --change) {
      fields[random() % (sizeof(layout) / 2)] =
          static_cast<int16_t>(random() % 3 == 0 ? random() : random() % 4200 / 8 * 8);
    }
    auto accepted = FrameLayout::Of(layout, python.layout().code_type);
    if (!accepted) continue;
    ++believed;
    Readings readings(*accepted, python.state(), python.thread());
    for (int look = 0; look < 3; ++look) readings.Take();
  }
  EXPECT_GT(believed, 300);
}

// Each round the code has another line table of the largest size.
TEST(HostileMemory, OfCodeIsKeptWithinBounds) {
  FakePython python(kCPython38);
  const uint64_t code = python.AddCode("f", "/f.py", 1);
  const uint64_t tables[] = {python.AddBytes(std::string(32 << 10, 'a')),
                             python.AddBytes(std::string(32 << 10, 'b'))};
  python.SetStack({{code, 0}});
  Readings readings(python.layout(), python.state(), python.thread());
  uint32_t highest = 0;
  for (int i = 0; i < 5000; ++i) {
    python.SetLineTable(code, tables[i % 2]);
    Look look = readings.Take();
    if (!look.frames.empty()) highest = std::max(highest, look.frames[0].number);
  }
  EXPECT_GT(highest, 1000u);
  EXPECT_LE(highest, kMostCodeBytes / (32 << 10) + 2);
}

TEST(HostileMemory, OfStacksIsToldWithinBounds) {
  FakePython python(kCPython38);
  const uint64_t outer =
      python.AddCode(std::string(1024, 'f'), std::string(4096, 'p'), 1);
  std::string table;
  for (int i = 0; i < 600; ++i) table += "\x01\x01";
  std::vector<std::pair<uint64_t, int32_t>> frames(128, {outer, 0});
  frames[0].first = python.AddCode("inner", "/i.py", 1, table);
  python.SetStack(frames);
  Readings readings(python.layout(), python.state(), python.thread());
  size_t bytes = 0;
  for (int32_t i = 0; i < 600; ++i) {
    python.GoTo(i);
    Look look = readings.reader.Take(&readings.memory, &readings.codes);
    ASSERT_EQ(look.frames.size(), 128u);
    readings.stacks.Number(look, &readings.codes);
    for (const auto& stack : readings.stacks.TakeNew()) bytes += stack.ByteSizeLong();
  }
  EXPECT_GT(bytes, kMostStackBytes / 2);
  EXPECT_LE(bytes, kMostStackBytes + (2 << 20));
}

}  // namespace
}  // namespace lull::relay
