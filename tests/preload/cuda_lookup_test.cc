// Programs that find CUDA by themselves, or not at all. Nothing here is linked
// against a CUDA library; each test runs in a process of its own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include "preload/abi/hook_list.h"
#include "tests/preload/cuda_fake.h"
#include "tests/preload/cuda_shim_double.h"

namespace {

using lull::abi::HookId;
using Malloc = int(void**, size_t);
using GetProcAddress = int(const char*, void**, int, unsigned long, int*);

void* load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  return handle;
}

template <typename Function>
Function* look_up(void* handle, const char* name) {
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

FakeLog& log_of(void* handle, const char* name) {
  return *look_up<FakeLog*()>(handle, name)();
}

bool is_ours(void* function) {
  Dl_info info;
  return dladdr(function, &info) != 0 &&
         strstr(info.dli_fname, "liblull_cuda_hooks") != nullptr;
}

TEST(CudaLookup, WithoutCudaThereIsNoneByDefaultOrNext) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cudaMalloc"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
  EXPECT_EQ(dlsym(RTLD_NEXT, "cudaMalloc"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cuLaunchKernel"), nullptr);
  EXPECT_EQ(dlsym(dlopen(nullptr, RTLD_LAZY), "cuLaunchKernel"), nullptr);
}

TEST(CudaLookup, OtherNamesAreAnsweredAsEver) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "getenv"), reinterpret_cast<void*>(&getenv));
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cudaGetDeviceCount"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "no_such_function"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
}

// Only if dlsym sees the return address of its true caller does the search begin
// behind that caller.
TEST(CudaLookup, NextStillMeansNextAfterTheCaller) {
  auto* next_of_a = look_up<int()>(load(NEXT_A), "next_marker");
  ASSERT_NE(next_of_a, nullptr);
  EXPECT_EQ(next_of_a(), 2);
}

TEST(CudaLookup, FindsTheRuntimeOfACallerThatWasLoadedLocally) {
  double_start_recording();
  void* caller = load(CALLER_13);
  auto* table = look_up<const Cudart*()>(caller, "caller_13")();
  void* out = nullptr;
  EXPECT_EQ(table->malloc(&out, 64), 0);
  EXPECT_EQ(out, kDeviceMemory);
  EXPECT_EQ(double_event_count(), 1u);
}

TEST(CudaLookup, GivesTheWrapperOfTheLibraryThatWasAsked) {
  double_start_recording();
  void* cudart12 = load(CUDART_12);
  void* cudart13 = load(CUDART_13);
  auto* malloc12 = look_up<Malloc>(cudart12, "cudaMalloc");
  auto* malloc13 = look_up<Malloc>(cudart13, "cudaMalloc");
  EXPECT_TRUE(is_ours(reinterpret_cast<void*>(malloc12)));
  EXPECT_NE(malloc12, malloc13);
  void* out = nullptr;
  EXPECT_EQ(malloc12(&out, 8), 0);
  EXPECT_EQ(log_of(cudart12, "fake_log_12").calls, 1);
  EXPECT_EQ(log_of(cudart13, "fake_log_13").calls, 0);
  EXPECT_EQ(malloc13(&out, 8), 0);
  EXPECT_EQ(log_of(cudart13, "fake_log_13").calls, 1);
  EXPECT_EQ(double_event_count(), 2u);
}

TEST(CudaLookup, LeavesNoMessageAfterASuccess) {
  void* cudart = load(CUDART_13);
  dlerror();
  EXPECT_NE(dlsym(cudart, "cudaMalloc"), nullptr);
  EXPECT_EQ(dlerror(), nullptr);
}

TEST(CudaLookup, AFunctionThatTheLibraryLacksStaysMissing) {
  void* cudart = load(CUDART_13);
  EXPECT_EQ(dlsym(cudart, "cudaGraphLaunch"), nullptr);
}

TEST(CudaLookup, FindsAGlobalRuntimeByDefault) {
  ASSERT_NE(dlopen(CUDART_12, RTLD_NOW | RTLD_GLOBAL), nullptr);
  void* found = dlsym(RTLD_DEFAULT, "cudaMalloc");
  EXPECT_TRUE(is_ours(found));
  void* out = nullptr;
  EXPECT_EQ(reinterpret_cast<Malloc*>(found)(&out, 8), 0);
  EXPECT_EQ(out, kDeviceMemory);
}

TEST(CudaLookup, LeavesTheFunctionOfAnotherInterposerAlone) {
  void* other = load(NEXT_A);
  void* found = dlsym(other, "cudaMalloc");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(is_ours(found));
}

TEST(CudaLookup, AnInertProcessGetsTheOriginal) {
  double_set_mode(lull::Mode::kInert);
  EXPECT_FALSE(is_ours(dlsym(load(CUDART_13), "cudaMalloc")));
}

TEST(CudaLookup, WrapsWhatTheDriverGivesOut) {
  double_start_recording();
  void* driver = load(DRIVER);
  auto* get = look_up<GetProcAddress>(driver, "cuGetProcAddress_v2");
  ASSERT_TRUE(is_ours(reinterpret_cast<void*>(get)));
  void* allocate = nullptr;
  int status = 7;
  EXPECT_EQ(get("cuMemAlloc", &allocate, 13000, 0, &status), 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_ours(allocate));
  unsigned long long out = 0;
  EXPECT_EQ(reinterpret_cast<int (*)(unsigned long long*, size_t)>(allocate)(&out, 5),
            0);
  ASSERT_EQ(double_event_count(), 1u);
  EXPECT_EQ(double_event(0).api, static_cast<uint16_t>(HookId::k_cuMemAlloc_v2));
}

TEST(CudaLookup, LeavesAnUnknownAnswerOfTheDriverAlone) {
  double_start_recording();
  auto* get = look_up<GetProcAddress>(load(DRIVER), "cuGetProcAddress_v2");
  void* launch = nullptr;
  EXPECT_EQ(get("cuLaunchKernel", &launch, 13000, 2, nullptr), 0);
  EXPECT_NE(launch, nullptr);
  EXPECT_FALSE(is_ours(launch));
  void* nothing = &launch;
  EXPECT_EQ(get("cuNoSuchThing", &nothing, 13000, 0, nullptr), 500);
  EXPECT_EQ(nothing, nullptr);
}

}  // namespace
