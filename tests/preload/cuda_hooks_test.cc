// What the CUDA wrappers pass on and what they record. Two runtimes are mapped.
#include <dlfcn.h>
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "daemon/base/event_views.h"
#include "preload/abi/hook_list.h"
#include "tests/preload/cuda_fake.h"
#include "tests/preload/cuda_shim_double.h"

extern "C" int cuStreamSynchronize(void* stream);
extern "C" int cuMemcpyHtoDAsync_v2(unsigned long long, const void*, size_t, void*);

namespace {

using lull::CopyCallView;
using lull::LaunchView;
using lull::MemoryView;
using lull::abi::CopyKind;
using lull::abi::Event;
using lull::abi::EventType;
using lull::abi::HookId;
using testing::ElementsAre;

constexpr char kKernel = 0;
constexpr lull::Dim3 kGrid = {1, 2, 3};
constexpr lull::Dim3 kBlock = {4, 5, 6};

class CudaHooks : public testing::Test {
 protected:
  CudaHooks() {
    *fake_log_12() = *fake_log_13() = *fake_log_driver() = FakeLog{};
    double_start_recording();
  }
  int launch() { return cuda_.launch(&kKernel, kGrid, kBlock, nullptr, 0, kStream); }
  Event only_event() {
    EXPECT_EQ(double_event_count(), 1u);
    return double_event(0);
  }
  lull::abi::SegmentView segment() { return lull::abi::SegmentView(double_segment()); }
  uint16_t id(HookId hook) { return static_cast<uint16_t>(hook); }

  const Cudart& cuda_ = *caller_13();
};

TEST_F(CudaHooks, CallTheOriginalOnceWithUnchangedArgumentsAndResult) {
  fake_log_13()->result = 719;
  void* args[] = {nullptr};
  EXPECT_EQ(cuda_.launch(&kKernel, kGrid, kBlock, args, 48, kStream), 719);
  EXPECT_EQ(fake_log_13()->calls, 1);
  auto value = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  EXPECT_THAT(fake_log_13()->arguments,
              ElementsAre(value(&kKernel), 10203u, 40506u, value(args), 48u,
                          value(kStream), 0u, 0u));
}

TEST_F(CudaHooks, CallersOfEachRuntimeReachTheirOwnWhileBothAreMapped) {
  void* out = nullptr;
  caller_13()->malloc(&out, 1);
  EXPECT_EQ(fake_log_13()->calls, 1);
  EXPECT_EQ(fake_log_12()->calls, 0);
  caller_12()->malloc(&out, 1);
  EXPECT_EQ(fake_log_13()->calls, 1);
  EXPECT_EQ(fake_log_12()->calls, 1);
  EXPECT_EQ(double_event_count(), 2u);
}

TEST_F(CudaHooks, LeaveTheErrnoOfTheOriginal) {
  fake_log_13()->errno_to_leave = EDOM;
  launch();
  EXPECT_EQ(errno, EDOM);
  cuda_.device_synchronize();
  EXPECT_EQ(errno, EDOM);
  cuda_.memcpy_async(kDeviceMemory, kPageableMemory, 1, lull::kCopyHostToDevice,
                     kStream);
  EXPECT_EQ(errno, EDOM);
}

CopyKind kind_of(const Event& copy) {
  return static_cast<CopyKind>(CopyCallView{copy}.kind());
}

TEST_F(CudaHooks, RecordALaunchWithItsTipAndHandles) {
  launch();
  Event event = only_event();
  EXPECT_EQ(event.type, EventType::kLaunch);
  EXPECT_EQ(event.api, id(HookId::k_cudaLaunchKernel));
  EXPECT_EQ(LaunchView{event}.stream(), reinterpret_cast<uint64_t>(kStream));
  EXPECT_EQ(LaunchView{event}.function(), reinterpret_cast<uint64_t>(&kKernel));
  EXPECT_EQ(event.py_stack, kPythonTip);
  EXPECT_EQ(event.native_stack, 0u);
  EXPECT_EQ(event.flags, 0);
  EXPECT_TRUE(double_thread_is_watched());
  EXPECT_EQ(segment().gpu_calls(), 1u);
}

TEST_F(CudaHooks, TakeTheWholeStackOfALaunchThatComesLate) {
  launch();
  segment().control().late_launch_ns = 1;
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  launch();
  segment().control().late_launch_ns = 60'000'000'000;
  launch();
  EXPECT_EQ(double_event(1).py_stack, kWholePythonStack);
  EXPECT_EQ(double_event(1).flags, lull::abi::kFlagLate);
  EXPECT_EQ(double_event(2).py_stack, kPythonTip);
  EXPECT_EQ(double_event(2).flags, 0);
}

TEST_F(CudaHooks, NoteTheWholeStackOfTheLaunchThatFollowsANode) {
  lull::abi::Ref noted;
  double_make_node();
  launch();
  EXPECT_TRUE(double_noted(&noted));
  EXPECT_EQ(noted, kWholePythonStack);
  EXPECT_EQ(only_event().py_stack, kPythonTip);  // the event's own is what it was
  double_make_node();
  cuda_.memcpy_async(kDeviceMemory, kPinnedMemory, 8, lull::kCopyHostToDevice, kStream);
  EXPECT_TRUE(double_noted(&noted));
  EXPECT_EQ(noted, kWholePythonStack);
  double_make_node();
  cuda_.device_synchronize();
  EXPECT_TRUE(double_noted(&noted));
  EXPECT_EQ(noted, kWholePythonStack);
}

TEST_F(CudaHooks, NoteThatTheStackAfterANodeWasThinned) {
  lull::abi::Ref noted;
  for (uint32_t thinning : {lull::abi::kThinNativeStacks, lull::abi::kThinLaunches}) {
    segment().control().thinning = thinning;
    double_make_node();
    launch();
    EXPECT_TRUE(double_noted(&noted)) << thinning;
    EXPECT_EQ(noted, 0u) << thinning;
  }
}

TEST_F(CudaHooks, SurviveALaunchWithoutConfiguration) {
  fake_log_13()->result = 1;
  EXPECT_EQ(cuda_.launch_config(nullptr, &kKernel, nullptr), 1);
  Event event = only_event();
  EXPECT_EQ(event.flags, lull::abi::kFlagFailed);
  EXPECT_EQ(LaunchView{event}.stream(), 0u);
}

TEST_F(CudaHooks, FindTheStreamInALaunchConfiguration) {
  lull::LaunchConfig config{};
  config.stream = kStream;
  cuda_.launch_config(&config, &kKernel, nullptr);
  Event event = only_event();
  EXPECT_EQ(LaunchView{event}.stream(), reinterpret_cast<uint64_t>(kStream));
}

TEST_F(CudaHooks, RecordASynchronisationWithBothStacksAndItsDuration) {
  cuda_.device_synchronize();
  Event event = only_event();
  EXPECT_EQ(event.type, EventType::kSync);
  EXPECT_EQ(event.api, id(HookId::k_cudaDeviceSynchronize));
  EXPECT_EQ(event.py_stack, kWholePythonStack);
  EXPECT_EQ(event.native_stack, kNativeStack);
  EXPECT_GT(event.start_ns, 0u);
  EXPECT_LT(event.duration_ns, 1'000'000'000u);
}

TEST_F(CudaHooks, DoNotCountADriverCallInsideARuntimeCallTwice) {
  cuda_.stream_synchronize(kStream);
  EXPECT_EQ(fake_log_driver()->calls, 1);
  EXPECT_EQ(only_event().api, id(HookId::k_cudaStreamSynchronize));
}

TEST_F(CudaHooks, RecordADriverCallMadeByTheProgramItself) {
  cuStreamSynchronize(kStream);
  EXPECT_EQ(fake_log_driver()->calls, 1);
  EXPECT_EQ(only_event().api, id(HookId::k_cuStreamSynchronize));
}

TEST_F(CudaHooks, KeepRecordingAfterAnExceptionPassedThrough) {
  fake_log_13()->throws = true;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(cuda_.device_synchronize(), int);
  EXPECT_EQ(fake_log_13()->calls, 3);
  EXPECT_EQ(double_event_count(), 0u);
  fake_log_13()->throws = false;
  cuda_.device_synchronize();
  EXPECT_EQ(double_event_count(), 1u);
}

TEST_F(CudaHooks, RecordAnAllocationWithTheAddressItGot) {
  void* out = nullptr;
  cuda_.malloc(&out, 4096);
  Event event = only_event();
  EXPECT_EQ(event.type, EventType::kDeviceMemory);
  EXPECT_EQ(MemoryView{event}.address(), reinterpret_cast<uint64_t>(kDeviceMemory));
  EXPECT_EQ(MemoryView{event}.bytes(), 4096u);
  EXPECT_EQ(event.flags, 0);
}

TEST_F(CudaHooks, RecordAFailedAllocationWithoutAddress) {
  fake_log_13()->result = 2;
  void* out = kPinnedMemory;
  EXPECT_EQ(cuda_.malloc(&out, 4096), 2);
  Event event = only_event();
  EXPECT_EQ(MemoryView{event}.address(), 0u);
  EXPECT_EQ(event.flags, lull::abi::kFlagFailed);
}

TEST_F(CudaHooks, CountThePitchOfAPitchedAllocation) {
  void* out = nullptr;
  size_t pitch = 0;
  cuda_.malloc_pitch(&out, &pitch, 500, 3);
  Event event = only_event();
  EXPECT_EQ(MemoryView{event}.bytes(), 3u * 512);
}

TEST_F(CudaHooks, MarkPinnedMemoryAndReleases) {
  void* out = nullptr;
  cuda_.host_alloc(&out, 64, 0);
  cuda_.free(kDeviceMemory);
  Event pinned = double_event(0), freed = double_event(1);
  EXPECT_EQ(pinned.flags, lull::abi::kFlagPinned);
  EXPECT_EQ(MemoryView{pinned}.address(), reinterpret_cast<uint64_t>(kPinnedMemory));
  EXPECT_EQ(freed.flags, lull::abi::kFlagFree);
  EXPECT_EQ(MemoryView{freed}.address(), reinterpret_cast<uint64_t>(kDeviceMemory));
  EXPECT_EQ(MemoryView{freed}.bytes(), 0u);
}

TEST_F(CudaHooks, RecordABlockingCopyToTheHostAsASync) {
  cuda_.memcpy(kPageableMemory, kDeviceMemory, 100, lull::kCopyDeviceToHost);
  Event event = only_event();
  EXPECT_EQ(event.type, EventType::kSync);
  EXPECT_EQ(CopyCallView{event}.bytes(), 100u);
  EXPECT_EQ(kind_of(event), CopyKind::kDeviceToHost);
  EXPECT_EQ(event.flags, lull::abi::kFlagPageable);
  EXPECT_EQ(event.py_stack, kWholePythonStack);
}

TEST_F(CudaHooks, RecordACopyWithinTheDeviceAndAMemsetAsSubmittedOnly) {
  cuda_.memcpy(kDeviceMemory, kDeviceMemory, 100, lull::kCopyDeviceToDevice);
  cuda_.memset(kDeviceMemory, 0, 50);
  EXPECT_EQ(double_event(0).type, EventType::kCopyAsync);
  EXPECT_EQ(double_event(1).type, EventType::kCopyAsync);
  Event memset = double_event(1);
  EXPECT_EQ(CopyCallView{memset}.bytes(), 50u);
  EXPECT_EQ(kind_of(memset), CopyKind::kDeviceToDevice);
}

TEST_F(CudaHooks, TellAnAsyncCopyOfPageableMemoryFromOneOfPinnedMemory) {
  cuda_.memcpy_async(kDeviceMemory, kPageableMemory, 8, lull::kCopyHostToDevice,
                     kStream);
  cuda_.memcpy_async(kDeviceMemory, kPinnedMemory, 8, lull::kCopyHostToDevice, kStream);
  EXPECT_EQ(double_event(0).type, EventType::kSync);
  EXPECT_EQ(double_event(0).flags, lull::abi::kFlagPageable);
  Event pageable = double_event(0);
  EXPECT_EQ(CopyCallView{pageable}.stream(), reinterpret_cast<uint64_t>(kStream));
  EXPECT_EQ(double_event(1).type, EventType::kCopyAsync);
  EXPECT_EQ(double_event(1).flags, lull::abi::kFlagPinned);
  EXPECT_EQ(double_event(1).py_stack, kPythonTip);
}

TEST_F(CudaHooks, InferTheDirectionOfADefaultCopyFromItsPointers) {
  auto copy = [&](void* dst, void* src) {
    cuda_.memcpy_async(dst, src, 8, lull::kCopyDefault, kStream);
    return double_event(double_event_count() - 1);
  };
  Event to_host = copy(kPinnedMemory, kDeviceMemory);
  EXPECT_EQ(kind_of(to_host), CopyKind::kDeviceToHost);
  EXPECT_EQ(to_host.type, EventType::kCopyAsync);
  Event to_device = copy(kDeviceMemory, kPageableMemory);
  EXPECT_EQ(kind_of(to_device), CopyKind::kHostToDevice);
  EXPECT_EQ(to_device.type, EventType::kSync);
  Event within = copy(kDeviceMemory, kDeviceMemory);
  EXPECT_EQ(kind_of(within), CopyKind::kDeviceToDevice);
  EXPECT_EQ(within.type, EventType::kCopyAsync);
  EXPECT_EQ(copy(kPinnedMemory, kPageableMemory).type, EventType::kSync);
}

TEST_F(CudaHooks, AskTheDriverAboutCopiesOfTheDriver) {
  cuMemcpyHtoDAsync_v2(0x1000, kPageableMemory, 8, kStream);
  cuMemcpyHtoDAsync_v2(0x1000, kPinnedMemory, 8, kStream);
  EXPECT_EQ(double_event(0).type, EventType::kSync);
  EXPECT_EQ(double_event(1).type, EventType::kCopyAsync);
}

TEST_F(CudaHooks, LeaveAPendingCudaErrorInPlace) {
  fake_log_13()->last_error = 700;
  cuda_.memcpy_async(kDeviceMemory, kUnaskableMemory, 8, lull::kCopyHostToDevice,
                     kStream);
  EXPECT_EQ(fake_log_13()->last_error, 700);
}

TEST_F(CudaHooks, LeaveNoCudaErrorOfTheirOwnBehind) {
  cuda_.memcpy_async(kDeviceMemory, kUnaskableMemory, 8, lull::kCopyHostToDevice,
                     kStream);
  EXPECT_EQ(fake_log_13()->last_error, 0);
  EXPECT_EQ(only_event().type, EventType::kCopyAsync);
  EXPECT_EQ(only_event().flags, 0);
}

TEST_F(CudaHooks, LeaveOutNativeStacksAndLaunchesAsTheGovernorSays) {
  segment().control().thinning = lull::abi::kThinNativeStacks;
  cuda_.device_synchronize();
  EXPECT_EQ(only_event().native_stack, 0u);
  EXPECT_EQ(only_event().py_stack, kWholePythonStack);
  EXPECT_EQ(only_event().flags, lull::abi::kFlagStackThinned);
  segment().control().thinning = lull::abi::kThinLaunches;
  launch();
  EXPECT_EQ(double_event_count(), 1u);
  EXPECT_EQ(segment().gpu_calls(), 2u);
  // In a window they tell whose the gaps are.
  segment().header().cupti_state =
      static_cast<uint32_t>(lull::abi::CuptiState::kTracing);
  launch();
  EXPECT_EQ(double_event_count(), 2u);
  EXPECT_EQ(double_event(1).py_stack, kWholePythonStack);
  EXPECT_EQ(double_event(1).native_stack, 0u);
  EXPECT_EQ(double_event(1).flags,
            lull::abi::kFlagStackThinned | lull::abi::kFlagAlone);
}

TEST_F(CudaHooks, RecordNothingWhileDisarmed) {
  segment().control().armed = 0;
  launch();
  EXPECT_EQ(fake_log_13()->calls, 1);
  EXPECT_EQ(double_event_count(), 0u);
}

TEST_F(CudaHooks, RecordDeviceMemoryAloneInAControlStep) {
  segment().control().armed = lull::abi::kControlStep;
  launch();
  cuda_.device_synchronize();
  EXPECT_EQ(double_event_count(), 0u);
  void* block = nullptr;
  cuda_.malloc(&block, 4096);
  EXPECT_EQ(only_event().type, EventType::kDeviceMemory);
  EXPECT_EQ(only_event().arg1, 4096u);
  segment().control().armed = lull::abi::kAsleep;
  cuda_.malloc(&block, 4096);
  EXPECT_EQ(double_event_count(), 1u);
}

}  // namespace
