// What a stack lies in, found in memory that looks like an interpreter's: ours.
#include "daemon/relay/samples/stack_finder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "preload/stacks/layouts/cpython_3_10.h"
#include "preload/stacks/layouts/cpython_3_11.h"
#include "tests/daemon/relay/samples/fake_python.h"

namespace lull::relay {
namespace {

uint64_t AddSomeStack(FakePython& python) {
  const uint64_t code = python.AddCode("work", "work.py", 1);
  python.SetStack({{code, 2}, {code, 4}, {code, 6}});
  return code;
}

void ExpectFindsThreeFrames(const abi::PythonLayout& layout) {
  FakePython python(layout);
  AddSomeStack(python);
  TargetMemory memory(getpid(), nullptr);
  CopyPlan plan;
  StackFinder finder(python.layout(), &memory, &plan);
  ASSERT_EQ(finder.Find(python.state(), python.thread()),
            v1::HOST_SAMPLE_QUALITY_EXACT);
  ASSERT_GT(plan.size(), 1u);
  EXPECT_EQ(plan.at(0).size, python.layout().thread.size) << "the thread comes first";
  uint64_t bytes = 0;
  for (size_t i = 1; i < plan.size(); ++i) bytes += plan.at(i).size;
  EXPECT_GE(bytes, 3u * python.layout().frame.size);
}

TEST(StackFinder, FindsFramesInAChunk) { ExpectFindsThreeFrames(kCPython311); }

TEST(StackFinder, FindsFramesThatAreObjects) { ExpectFindsThreeFrames(kCPython310); }

TEST(StackFinder, SaysThatTheStateIsAnotherThreads) {
  FakePython python(kCPython311);
  AddSomeStack(python);
  TargetMemory memory(getpid(), nullptr);
  CopyPlan plan;
  EXPECT_EQ(StackFinder(python.layout(), &memory, &plan)
                .Find(python.state(), python.thread() + 8),
            v1::HOST_SAMPLE_QUALITY_NO_STATE);
}

TEST(StackFinder, SaysThatTheStateIsNotThere) {
  FakePython python(kCPython311);
  TargetMemory memory(getpid(), nullptr);
  CopyPlan plan;
  EXPECT_EQ(StackFinder(python.layout(), &memory, &plan).Find(0x10000, 1),
            v1::HOST_SAMPLE_QUALITY_FAILED);
}

}  // namespace
}  // namespace lull::relay
