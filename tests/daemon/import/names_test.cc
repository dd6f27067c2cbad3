#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/import/api_names.h"
#include "daemon/import/python_names.h"

namespace lull::imports {
namespace {

TEST(Calls, AreKnownByTheirVerbs) {
  struct {
    const char* name;
    CallKind kind;
  } const kCalls[] = {
      {"cudaLaunchKernel", CallKind::kLaunch},
      {"cudaLaunchKernelExC", CallKind::kLaunch},
      {"cuLaunchKernelEx", CallKind::kLaunch},
      {"hipExtModuleLaunchKernel", CallKind::kLaunch},
      {"cudaGraphLaunch", CallKind::kLaunch},
      {"cudaStreamSynchronize", CallKind::kSync},
      {"hipDeviceSynchronize", CallKind::kSync},
      {"cudaMemcpyAsync", CallKind::kCopy},
      {"hipMemcpyWithStream", CallKind::kCopy},
      {"cudaMemsetAsync", CallKind::kMemset},
      {"cudaMalloc", CallKind::kAllocate},
      {"hipFree", CallKind::kFree},
      {"cuMemCreate", CallKind::kAllocate},
      {"cuMemUnmap", CallKind::kFree},
      {"cudaFuncSetAttribute", CallKind::kOther},
      {"cudaStreamIsCapturing", CallKind::kOther},
      {"current", CallKind::kOther},
      {"INVALID", CallKind::kOther},
      {"", CallKind::kOther},
  };
  for (const auto& call : kCalls) {
    EXPECT_EQ(FactsOfCall(call.name).kind, call.kind) << call.name;
  }
  EXPECT_TRUE(FactsOfCall("cudaHostAlloc").pinned);
  EXPECT_TRUE(FactsOfCall("cudaFreeHost").pinned);
  EXPECT_FALSE(FactsOfCall("cudaMalloc").pinned);
  EXPECT_TRUE(FactsOfCall("hipMemcpyWithStream").blocking);
  EXPECT_FALSE(FactsOfCall("cudaMemcpyAsync").blocking);
}

TEST(PythonNames, HavePlaceAndLine) {
  PythonName name = ParsePythonName("/a b/train (1).py(12): step");
  EXPECT_EQ(name.file, "/a b/train (1).py");
  EXPECT_EQ(name.line, 12);
  EXPECT_EQ(name.function, "step");
  name = ParsePythonName("<string>(1): <module>");
  EXPECT_EQ(name.file, "<string>");
  EXPECT_EQ(name.function, "<module>");
}

TEST(PythonNames, OfBuiltInFunctionsHaveNoAddress) {
  PythonName name =
      ParsePythonName("<built-in method item of Tensor object at 0x7f12ab34>");
  EXPECT_EQ(name.function, "item of Tensor");
  EXPECT_EQ(name.file, kBuiltinFile);
  EXPECT_EQ(name.line, 0);
  EXPECT_EQ(ParsePythonName("<built-in function zoom>").function, "zoom");
  EXPECT_EQ(ParsePythonName("<built-in method a of type object at 0x1>").function,
            "a of type");
  EXPECT_EQ(ParsePythonName("<built-in ").function, "<built-in ");
  EXPECT_EQ(ParsePythonName("nn.Module: Linear_3").file, kModuleFile);
  EXPECT_EQ(ParsePythonName("anything").function, "anything");
  EXPECT_EQ(ParsePythonName("").function, "");
}

TEST(CallStacks, AreInnermostFirst) {
  const auto frames = ParseCallStack("a.py(3): f;no frame;/b.py(7): <module>");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].function(), "f");
  EXPECT_EQ(frames[1].file(), "/b.py");
  EXPECT_EQ(frames[1].line(), 7);
  EXPECT_TRUE(ParseCallStack("").empty());
}

}  // namespace
}  // namespace lull::imports
