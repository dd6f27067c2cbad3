#include "daemon/aggregate/native_frames.h"

#include <gtest/gtest.h>

namespace lull::aggregate {
namespace {

const char* const kProgram = "/home/u/train";
const char* const kStubs = "/tmp/tmpxft_0000650a_00000000-6_train.cudafe1.stub.c";
const char* const kHelper =
    "/usr/local/cuda/bin/../targets/x86_64-linux/include/crt/device_functions.h";

// "FUNCTION:LINE" of the frame that somebody wrote.
std::string Written(const std::vector<Frame>& frames) {
  std::vector<const Frame*> pointers;
  for (const Frame& frame : frames) pointers.push_back(&frame);
  const Frame* found = FirstWritten(pointers);
  return found == nullptr ? "none"
                          : found->function + ":" + std::to_string(found->line);
}

TEST(NativeFrames, TheSiteOfALaunchIsTheLineWithTheChevrons) {
  EXPECT_EQ(
      Written({{"__cudaLaunchKernel_helper(CUkern_st*, dim3)", kHelper, 2963, kProgram},
               {"__device_stub__Z4axpyfPfS_i(float)", kStubs, 14, kProgram},
               {"axpy(float, float*, float*, int)", "train.cu", 8, kProgram},
               {"step(int)", "train.cu", 19, kProgram},
               {"main", "train.cu", 25, kProgram}}),
      "step(int):19");
  // A template, optimised: inlined frames have their bare names.
  EXPECT_EQ(Written({{"__cudaLaunchKernel_helper", kHelper, 2963, kProgram},
                     {"__device_stub__Z4fillIfEvPT_S0_i(float*)", kStubs, 1, kProgram},
                     {"__wrapper__device_stub_fill<float>", kStubs, 2, kProgram},
                     {"fill<float>", "train.cu", 11, kProgram},
                     {"operator()", "train.cu", 20, kProgram}}),
            "operator():20");
  EXPECT_EQ(
      Written({{"__device_stub__ZN2ns4axpyEfPfS_i(float)", "", 0, kProgram},
               {"void ns::(anonymous namespace)::axpy<(anonymous namespace)::T>(float)",
                "train.cu", 8, kProgram},
               {"step(int)", "train.cu", 19, kProgram}}),
      "step(int):19");
}

TEST(NativeFrames, ATailCallMayHaveLeftTheKernelOut) {
  EXPECT_EQ(Written({{"__device_stub__Z4axpyfPfS_i(float)", "", 0, kProgram},
                     {"step(int)", "", 0, kProgram}}),
            "step(int):0");
}

TEST(NativeFrames, AFunctionThatLaunchesMayHaveTheNameOfTheKernel) {
  EXPECT_EQ(Written({{"__device_stub__Z4axpyfPfS_i(float)", kStubs, 14, kProgram},
                     {"axpy(float, float*, float*, int)", "train.cu", 8, kProgram},
                     {"host::axpy(int)", "train.cu", 30, kProgram},
                     {"main", "train.cu", 40, kProgram}}),
            "host::axpy(int):30");
  // Nor is a function a kernel because a stack has one further out.
  EXPECT_EQ(Written({{"axpy(int)", "train.cu", 8, kProgram},
                     {"main", "train.cu", 40, kProgram}}),
            "axpy(int):8");
}

TEST(NativeFrames, AKernelOfCHasItsNameUnmangled) {
  EXPECT_EQ(Written({{"__device_stub__axpy(float)", kStubs, 14, kProgram},
                     {"axpy", "train.cu", 8, kProgram},
                     {"step", "train.cu", 19, kProgram}}),
            "step:19");
}

TEST(NativeFrames, FramesOfLibraryHeadersAreNobodysLine) {
  EXPECT_EQ(Written({{"__invoke_impl<void, F&, int>",
                      "/usr/include/c++/12/bits/invoke.h", 61, kProgram},
                     {"std::function<void (int)>::operator()(int) const",
                      "/usr/include/c++/12/bits/std_function.h", 591, kProgram},
                     {"main", "train.cu", 25, kProgram}}),
            "main:25");
  // The code of a lambda may have been inlined into such a function without a line.
  EXPECT_EQ(Written({{"std::_Function_handler<void (int), F>::_M_invoke(int&&)", "", 0,
                      kProgram},
                     {"main", "", 0, kProgram}}),
            "std::_Function_handler<void (int), F>::_M_invoke(int&&):0");
}

TEST(NativeFrames, AStackMayHoldNothingThatSomebodyWrote) {
  EXPECT_EQ(Written({}), "none");
  EXPECT_EQ(
      Written({{"__cudaLaunchKernel_helper", kHelper, 2963, kProgram},
               {"__libc_start_main", "../csu/libc-start.c", 360, "/lib/libc.so.6"},
               {"_start", "", 0, kProgram}}),
      "none");
}

TEST(NativeFrames, ARuntimeLinkedIntoTheProgramIsNobodysLine) {
  const char* hash = "libcudart_static_aa4a6bcb5fce58be20d542d9b467101e0a9360a5";
  EXPECT_EQ(Written({{hash, "", 0, kProgram},
                     {hash, "", 0, kProgram},
                     {"cudaStreamSynchronize", "", 0, kProgram},
                     {"step(int)", "train.cu", 19, kProgram}}),
            "step(int):19");
  EXPECT_EQ(Written({{"__cudart804", "", 0, kProgram},
                     {"cudaLaunchKernel", "", 0, kProgram},
                     {"__device_stub__Z4axpyfPfS_i(float)", kStubs, 14, kProgram},
                     {"axpy(float, float*, float*, int)", "train.cu", 8, kProgram},
                     {"step(int)", "train.cu", 19, kProgram}}),
            "step(int):19");
  // What the program itself calls so is the program's.
  EXPECT_EQ(
      Written({{"cudaCheck(cudaError)", "", 0, kProgram}, {"main", "", 0, kProgram}}),
      "cudaCheck(cudaError):0");
  EXPECT_EQ(Written({{"cudaSetUp", "train.c", 7, kProgram}, {"main", "", 0, kProgram}}),
            "cudaSetUp:7");
  EXPECT_EQ(Written({{"cudaMalloc", "", 0, "/opt/libcudart.so.12"},
                     {"allocate", "", 0, kProgram},
                     {"cudaSetUp", "", 0, kProgram}}),
            "allocate:0");
  EXPECT_EQ(Written({{"__cudartist", "", 0, kProgram}}), "__cudartist:0");
  // In C names have no parameters, and no line where it was compiled without any.
  EXPECT_EQ(
      Written({{"cudaUpload", "", 0, kProgram}, {"main", "train.c", 9, kProgram}}),
      "cudaUpload:0");
}

TEST(NativeFrames, TellsLibraryHeadersByTheirFolders) {
  for (const char* file :
       {kHelper, "/usr/local/cuda-12.4/include/cuda_runtime.h",
        "/opt/hpc_sdk/cuda/12.3/targets/sbsa-linux/include/cuda_fp16.hpp",
        "/opt/conda/targets/x86_64-linux/include/crt/host_runtime.h",
        "/venv/lib/python3.11/site-packages/nvidia/cu13/include/cccl/thrust/sort.h",
        "/venv/lib/python3.11/site-packages/torch/include/c10/cuda/CUDAStream.h",
        "/usr/include/c++/12/bits/invoke.h", "/opt/llvm/include/c++/v1/functional",
        "/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h",
        "/home/u/cccl/include/thrust/for_each.h", "cuda_runtime.h"}) {
    EXPECT_TRUE(IsLibraryHeader(file)) << file;
  }
  for (const char* file :
       {"/home/u/train.cu", "train.cu", "", "/home/u/cuda/include/kernels.h",
        "/home/u/include/cuda/kernels.h", "/usr/local/cuda/samples/bandwidth.cu",
        "/home/u/torch/train.cc", "/usr/local/src/train.cu"}) {
    EXPECT_FALSE(IsLibraryHeader(file)) << file;
  }
}

TEST(NativeFrames, TheSiteIsTheCallerOfAnInlineFunctionOfTheCudaHeaders) {
  for (const char* inner :
       {"cudaMalloc<float>", "int cudaMalloc<float>(float**, unsigned long)"}) {
    EXPECT_EQ(Written({{inner, "", 0, "/home/u/train"},
                       {"step", "t.cu", 2, "/home/u/train"}}),
              "step:2");
  }
  EXPECT_EQ(
      Written({{"cudaMallocHost", "/cuda/include/cuda_runtime.h", 575, "/home/u/train"},
               {"step", "t.cu", 2, "/home/u/train"}}),
      "step:2");
  for (const char* own :
       {"cudaless<int>(int)", "check(cudaError)", "std::vector<cudaArray<int>>"}) {
    EXPECT_EQ(Written({{own, "t.cu", 1, "/home/u/train"},
                       {"main", "t.cu", 2, "/home/u/train"}}),
              std::string(own) + ":1");
  }
}

TEST(NativeFrames, TellsNativeInfrastructureByTheNameOfTheModule) {
  for (const char* module :
       {"/usr/local/cuda/lib64/libcudart.so.12", "/usr/lib/libcuda.so.1",
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
        "/lib/libc-2.28.so", "liblull.so", "/opt/torch/lib/libtorch_cuda.so",
        "/opt/torch/lib/libtorch.so", "/usr/lib/libc10.so", "libc10_cuda.so"}) {
    EXPECT_TRUE(IsNativeInfrastructure(module)) << module;
  }
  for (const char* module : {"/usr/lib/libcudnn.so.9", "/opt/libtorchvision.so",
                             "/usr/lib/libc100.so", "/home/u/a.out", ""}) {
    EXPECT_FALSE(IsNativeInfrastructure(module)) << module;
  }
}

}  // namespace
}  // namespace lull::aggregate
