// The words that shim, relay, collector and CLI share are declared where each of them
// can see them. Here, and nowhere else, they are held together: where two of them
// differ this does not compile, nor where one has a value that is not here.
#include <gtest/gtest.h>

#include <cstdint>

#include "daemon/aggregate/drawn_blocks.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/gpu_curve.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/aggregate/series.h"
#include "daemon/blame/blame.h"
#include "events.pb.h"
#include "preload/abi/event.h"
#include "preload/abi/segment.h"
#include "query.pb.h"

namespace lull {
namespace {

#define SAME(left, right) \
  static_assert(static_cast<int64_t>(left) == static_cast<int64_t>(right))

// A value of `from` is one of the proto. -Wswitch finds those that have no case.
#define IS(value, word)          \
  case From::value:              \
    SAME(From::value, v1::word); \
    return v1::word

constexpr v1::EventType Word(abi::EventType value) {
  using From = abi::EventType;
  switch (value) {
    IS(kNone, EVENT_TYPE_NONE);
    IS(kThreadStart, EVENT_TYPE_THREAD_START);
    IS(kLaunch, EVENT_TYPE_LAUNCH);
    IS(kSync, EVENT_TYPE_SYNC);
    IS(kCopyAsync, EVENT_TYPE_COPY_ASYNC);
    IS(kDeviceMemory, EVENT_TYPE_DEVICE_MEMORY);
    IS(kTorchMemory, EVENT_TYPE_TORCH_MEMORY);
    IS(kGcPause, EVENT_TYPE_GC_PAUSE);
    IS(kHostWait, EVENT_TYPE_HOST_WAIT);
    IS(kGpuKernel, EVENT_TYPE_GPU_KERNEL);
    IS(kGpuCopy, EVENT_TYPE_GPU_COPY);
    IS(kGpuMemset, EVENT_TYPE_GPU_MEMSET);
    IS(kGpuGraph, EVENT_TYPE_GPU_GRAPH);
    IS(kApiCall, EVENT_TYPE_API_CALL);
    IS(kGpuStreamWait, EVENT_TYPE_GPU_STREAM_WAIT);
    IS(kGpuTracing, EVENT_TYPE_GPU_TRACING);
    IS(kGpuLost, EVENT_TYPE_GPU_LOST);
    IS(kGpuMark, EVENT_TYPE_GPU_MARK);
    IS(kGpuDevice, EVENT_TYPE_GPU_DEVICE);
    IS(kStep, EVENT_TYPE_STEP);
    IS(kNonFinite, EVENT_TYPE_NON_FINITE);
    IS(kTorchReserved, EVENT_TYPE_TORCH_RESERVED);
    IS(kScope, EVENT_TYPE_SCOPE);
  }
  return v1::EVENT_TYPE_NONE;
}

constexpr v1::GpuMode Word(abi::GpuMode value) {
  using From = abi::GpuMode;
  switch (value) {
    IS(kHost, GPU_MODE_HOST);
    IS(kWindow, GPU_MODE_WINDOW);
    IS(kContinuous, GPU_MODE_CONTINUOUS);
  }
  return v1::GPU_MODE_HOST;
}

constexpr v1::TracingState Word(abi::TracingState value) {
  using From = abi::TracingState;
  switch (value) {
    IS(kOff, TRACING_STATE_OFF);
    IS(kWarmUp, TRACING_STATE_WARM_UP);
    IS(kActive, TRACING_STATE_ACTIVE);
    IS(kYielded, TRACING_STATE_YIELDED);
  }
  return v1::TRACING_STATE_OFF;
}

constexpr v1::TracingReason Word(abi::TracingReason value) {
  using From = abi::TracingReason;
  switch (value) {
    IS(kSchedule, TRACING_REASON_SCHEDULE);
    IS(kOtherUser, TRACING_REASON_OTHER_USER);
    IS(kBudget, TRACING_REASON_BUDGET);
    IS(kForeignClock, TRACING_REASON_FOREIGN_CLOCK);
    IS(kError, TRACING_REASON_ERROR);
    IS(kProcessEnd, TRACING_REASON_PROCESS_END);
    IS(kDisarmed, TRACING_REASON_DISARMED);
  }
  return v1::TRACING_REASON_SCHEDULE;
}

constexpr v1::CuptiState Word(abi::CuptiState value) {
  using From = abi::CuptiState;
  switch (value) {
    IS(kUnused, CUPTI_STATE_UNUSED);
    IS(kNoLibrary, CUPTI_STATE_NO_LIBRARY);
    IS(kTooOld, CUPTI_STATE_TOO_OLD);
    IS(kFailed, CUPTI_STATE_FAILED);
    IS(kReady, CUPTI_STATE_READY);
    IS(kTracing, CUPTI_STATE_TRACING);
    IS(kYielded, CUPTI_STATE_YIELDED);
  }
  return v1::CUPTI_STATE_UNUSED;
}

constexpr v1::NativeStackState Word(abi::NativeStackState value) {
  using From = abi::NativeStackState;
  switch (value) {
    IS(kUnknown, NATIVE_STACK_STATE_UNKNOWN);
    IS(kOn, NATIVE_STACK_STATE_ON);
    IS(kNoLibrary, NATIVE_STACK_STATE_NO_LIBRARY);
  }
  return v1::NATIVE_STACK_STATE_UNKNOWN;
}

constexpr v1::GcHookState Word(abi::GcHookState value) {
  using From = abi::GcHookState;
  switch (value) {
    IS(kNoPython, GC_HOOK_STATE_NO_PYTHON);
    IS(kPending, GC_HOOK_STATE_PENDING);
    IS(kOn, GC_HOOK_STATE_ON);
    IS(kFailed, GC_HOOK_STATE_FAILED);
  }
  return v1::GC_HOOK_STATE_NO_PYTHON;
}

constexpr v1::Thinning Word(abi::Thinning value) {
  using From = abi::Thinning;
  switch (value) {
    IS(kThinNothing, THINNING_NOTHING);
    IS(kThinNativeStacks, THINNING_NATIVE_STACKS);
    IS(kThinLaunches, THINNING_LAUNCHES);
    IS(kThinSteps, THINNING_STEPS);
  }
  return v1::THINNING_NOTHING;
}

constexpr v1::StepHookState Word(abi::StepHookState value) {
  using From = abi::StepHookState;
  switch (value) {
    IS(kNone, STEP_HOOK_STATE_NONE);
    IS(kPending, STEP_HOOK_STATE_PENDING);
    IS(kOn, STEP_HOOK_STATE_ON);
    IS(kUnavailable, STEP_HOOK_STATE_UNAVAILABLE);
  }
  return v1::STEP_HOOK_STATE_NONE;
}

constexpr v1::ScopeHookState Word(abi::ScopeHookState value) {
  using From = abi::ScopeHookState;
  switch (value) {
    IS(kNone, SCOPE_HOOK_STATE_NONE);
    IS(kPending, SCOPE_HOOK_STATE_PENDING);
    IS(kOn, SCOPE_HOOK_STATE_ON);
    IS(kUnavailable, SCOPE_HOOK_STATE_UNAVAILABLE);
  }
  return v1::SCOPE_HOOK_STATE_NONE;
}

constexpr v1::StepSource Word(abi::StepSource value) {
  using From = abi::StepSource;
  switch (value) {
    IS(kOptimizer, STEP_SOURCE_OPTIMIZER);
    IS(kNvtxRange, STEP_SOURCE_NVTX_RANGE);
  }
  return v1::STEP_SOURCE_NONE;
}

constexpr v1::GpuCopyKind Word(abi::GpuCopyKind value) {
  using From = abi::GpuCopyKind;
  switch (value) {
    IS(kUnknown, GPU_COPY_KIND_UNKNOWN);
    IS(kHostToDevice, GPU_COPY_KIND_HOST_TO_DEVICE);
    IS(kDeviceToHost, GPU_COPY_KIND_DEVICE_TO_HOST);
    IS(kHostToArray, GPU_COPY_KIND_HOST_TO_ARRAY);
    IS(kArrayToHost, GPU_COPY_KIND_ARRAY_TO_HOST);
    IS(kArrayToArray, GPU_COPY_KIND_ARRAY_TO_ARRAY);
    IS(kArrayToDevice, GPU_COPY_KIND_ARRAY_TO_DEVICE);
    IS(kDeviceToArray, GPU_COPY_KIND_DEVICE_TO_ARRAY);
    IS(kDeviceToDevice, GPU_COPY_KIND_DEVICE_TO_DEVICE);
    IS(kHostToHost, GPU_COPY_KIND_HOST_TO_HOST);
    IS(kPeerToPeer, GPU_COPY_KIND_PEER_TO_PEER);
  }
  return v1::GPU_COPY_KIND_UNKNOWN;
}

constexpr v1::GpuMemoryKind Word(abi::GpuMemoryKind value) {
  using From = abi::GpuMemoryKind;
  switch (value) {
    IS(kUnknown, GPU_MEMORY_KIND_UNKNOWN);
    IS(kPageable, GPU_MEMORY_KIND_PAGEABLE);
    IS(kPinned, GPU_MEMORY_KIND_PINNED);
    IS(kDevice, GPU_MEMORY_KIND_DEVICE);
    IS(kArray, GPU_MEMORY_KIND_ARRAY);
    IS(kManaged, GPU_MEMORY_KIND_MANAGED);
    IS(kDeviceStatic, GPU_MEMORY_KIND_DEVICE_STATIC);
    IS(kManagedStatic, GPU_MEMORY_KIND_MANAGED_STATIC);
  }
  return v1::GPU_MEMORY_KIND_UNKNOWN;
}

// Of the pure parts: all of an event's types that are on the wire ...
constexpr v1::EventType Word(aggregate::EventType value) {
  using From = aggregate::EventType;
  switch (value) {
    IS(kNone, EVENT_TYPE_NONE);
    IS(kThreadStart, EVENT_TYPE_THREAD_START);
    IS(kLaunch, EVENT_TYPE_LAUNCH);
    IS(kSync, EVENT_TYPE_SYNC);
    IS(kCopyAsync, EVENT_TYPE_COPY_ASYNC);
    IS(kDeviceMemory, EVENT_TYPE_DEVICE_MEMORY);
    IS(kTorchMemory, EVENT_TYPE_TORCH_MEMORY);
    IS(kGcPause, EVENT_TYPE_GC_PAUSE);
    IS(kHostWait, EVENT_TYPE_HOST_WAIT);
    IS(kGpuKernel, EVENT_TYPE_GPU_KERNEL);
    IS(kGpuCopy, EVENT_TYPE_GPU_COPY);
    IS(kGpuMemset, EVENT_TYPE_GPU_MEMSET);
    IS(kGpuGraph, EVENT_TYPE_GPU_GRAPH);
    IS(kApiCall, EVENT_TYPE_API_CALL);
    IS(kGpuStreamWait, EVENT_TYPE_GPU_STREAM_WAIT);
    IS(kGpuTracing, EVENT_TYPE_GPU_TRACING);
    IS(kGpuLost, EVENT_TYPE_GPU_LOST);
    IS(kGpuMark, EVENT_TYPE_GPU_MARK);
    IS(kGpuDevice, EVENT_TYPE_GPU_DEVICE);
    IS(kStep, EVENT_TYPE_STEP);
    IS(kNonFinite, EVENT_TYPE_NON_FINITE);
    IS(kTorchReserved, EVENT_TYPE_TORCH_RESERVED);
    IS(kScope, EVENT_TYPE_SCOPE);
    IS(kRunDelay, EVENT_TYPE_RUN_DELAY);
    IS(kHostSample, EVENT_TYPE_HOST_SAMPLE);
    default:  // made by the collector, for itself
      return v1::EVENT_TYPE_NONE;
  }
}

constexpr v1::HostSampleState Word(aggregate::SampleState value) {
  using From = aggregate::SampleState;
  switch (value) {
    IS(kRunning, HOST_SAMPLE_STATE_RUNNING);
    IS(kReady, HOST_SAMPLE_STATE_READY);
    IS(kBlocked, HOST_SAMPLE_STATE_BLOCKED);
  }
  return v1::HOST_SAMPLE_STATE_RUNNING;
}

constexpr v1::HostSampleQuality Word(aggregate::SampleQuality value) {
  using From = aggregate::SampleQuality;
  switch (value) {
    IS(kExact, HOST_SAMPLE_QUALITY_EXACT);
    IS(kHeld, HOST_SAMPLE_QUALITY_HELD);
    IS(kCut, HOST_SAMPLE_QUALITY_CUT);
    IS(kNoState, HOST_SAMPLE_QUALITY_NO_STATE);
    IS(kFailed, HOST_SAMPLE_QUALITY_FAILED);
  }
  return v1::HOST_SAMPLE_QUALITY_EXACT;
}

constexpr v1::HostSampleRole Word(aggregate::SampleRole value) {
  using From = aggregate::SampleRole;
  switch (value) {
    IS(kMain, HOST_SAMPLE_ROLE_MAIN);
    IS(kFeeder, HOST_SAMPLE_ROLE_FEEDER);
    IS(kAutograd, HOST_SAMPLE_ROLE_AUTOGRAD);
    IS(kLoader, HOST_SAMPLE_ROLE_LOADER);
    IS(kOther, HOST_SAMPLE_ROLE_OTHER);
  }
  return v1::HOST_SAMPLE_ROLE_OTHER;
}

constexpr v1::GapCause Word(blame::Cause value) {
  using From = blame::Cause;
  switch (value) {
    IS(kUnknown, GAP_CAUSE_UNKNOWN);
    IS(kDependency, GAP_CAUSE_DEPENDENCY);
    IS(kLaunchLatency, GAP_CAUSE_LAUNCH_LATENCY);
    IS(kGc, GAP_CAUSE_GC);
    IS(kAllocator, GAP_CAUSE_ALLOCATOR);
    IS(kDataWait, GAP_CAUSE_DATA_WAIT);
    IS(kGilWait, GAP_CAUSE_GIL_WAIT);
    IS(kHostWait, GAP_CAUSE_HOST_WAIT);
    IS(kSync, GAP_CAUSE_SYNC);
    IS(kRunQueue, GAP_CAUSE_RUN_QUEUE);
    IS(kLaunchBound, GAP_CAUSE_LAUNCH_BOUND);
    IS(kHostCode, GAP_CAUSE_HOST_CODE);
    IS(kLaunchCall, GAP_CAUSE_LAUNCH_CALL);
  }
  return v1::GAP_CAUSE_UNKNOWN;
}

// ... and the bits of its flags.
SAME(aggregate::kFlagFree, abi::kFlagFree);
SAME(aggregate::kFlagPinned, abi::kFlagPinned);
SAME(aggregate::kFlagFailed, abi::kFlagFailed);
SAME(aggregate::kFlagFromPython, abi::kFlagFromPython);
SAME(aggregate::kFlagBefore, abi::kFlagBefore);
SAME(aggregate::kFlagDrawn, abi::kFlagDrawn);
SAME(aggregate::kFlagUndrawn, abi::kFlagUndrawn);
SAME(aggregate::kSmallBytes, abi::kSmallBytes);
SAME(aggregate::kDrawnMeanBytes, abi::kDrawnMeanBytes);
SAME(aggregate::ScopeKind::kUser, abi::ScopeKind::kUser);
SAME(aggregate::ScopeKind::kData, abi::ScopeKind::kData);
SAME(aggregate::ScopeKind::kDataAside, abi::ScopeKind::kDataAside);
SAME(aggregate::SubmissionKind::kKernel, blame::OperationKind::kKernel);
SAME(aggregate::SubmissionKind::kCopy, blame::OperationKind::kCopy);
SAME(aggregate::SubmissionKind::kMemset, blame::OperationKind::kMemset);
SAME(aggregate::SubmissionKind::kGraph, blame::OperationKind::kGraph);
SAME(aggregate::kSampleRoles, v1::HostSampleRole_ARRAYSIZE);
SAME(aggregate::kGapCauses, v1::GapCause_ARRAYSIZE);
SAME(blame::kCauseCount, v1::GapCause_ARRAYSIZE);

// Every value of `Enum` in the proto is one of `From`, but those that are made
// elsewhere.
template <typename From, typename Enum>
void ExpectAllOf(int32_t made_elsewhere = 0) {
  const auto& words = *google::protobuf::GetEnumDescriptor<Enum>();
  int32_t elsewhere = 0;
  for (int i = 0; i < words.value_count(); ++i) {
    const int number = words.value(i)->number();
    bool known = static_cast<int>(Word(static_cast<From>(number))) == number;
    elsewhere += known ? 0 : 1;
  }
  EXPECT_EQ(elsewhere, made_elsewhere) << words.name();
}

TEST(Vocabulary, OfTheProtoHasNoWordThatTheOthersLack) {
  ExpectAllOf<abi::EventType, v1::EventType>(2);  // RUN_DELAY, HOST_SAMPLE: the relay's
  ExpectAllOf<abi::GpuMode, v1::GpuMode>();
  ExpectAllOf<abi::TracingState, v1::TracingState>();
  ExpectAllOf<abi::TracingReason, v1::TracingReason>(1);  // IMPORTED
  ExpectAllOf<abi::CuptiState, v1::CuptiState>();
  ExpectAllOf<abi::NativeStackState, v1::NativeStackState>();
  ExpectAllOf<abi::GcHookState, v1::GcHookState>();
  ExpectAllOf<abi::Thinning, v1::Thinning>(1);  // HALF: an older lull's
  ExpectAllOf<abi::StepHookState, v1::StepHookState>();
  ExpectAllOf<abi::ScopeHookState, v1::ScopeHookState>();
  // PERIOD is the collector's, PROFILER of imports.
  ExpectAllOf<abi::StepSource, v1::StepSource>(2);
  ExpectAllOf<abi::GpuCopyKind, v1::GpuCopyKind>();
  ExpectAllOf<abi::GpuMemoryKind, v1::GpuMemoryKind>();
  ExpectAllOf<aggregate::EventType, v1::EventType>();
  ExpectAllOf<aggregate::SampleState, v1::HostSampleState>();
  ExpectAllOf<aggregate::SampleQuality, v1::HostSampleQuality>();
  ExpectAllOf<aggregate::SampleRole, v1::HostSampleRole>();
  ExpectAllOf<blame::Cause, v1::GapCause>();
}

}  // namespace
}  // namespace lull
