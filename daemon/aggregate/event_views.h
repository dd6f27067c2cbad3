// What the arguments of an event mean, by its type: names for what preload/abi/event.h
// and proto/events.proto define. A view costs nothing and checks nothing: whoever makes
// one knows the type. What the words are is in the proto; see collector/ingest/told.h.
//
// Example:  bytes += SyncView{event}.bytes();
#pragma once

#include <cstdint>

#include "daemon/aggregate/event.h"
#include "daemon/base/ids.h"

namespace lull::aggregate {

struct LaunchView {
  const Event& event;
  uint64_t function() const { return event.arg1; }
};

struct CopyAsyncView {
  const Event& event;
  uint64_t bytes() const { return event.arg1; }
  uint32_t kind() const { return event.arg2; }  // cudaMemcpyKind
};

struct SyncView {
  const Event& event;
  uint64_t bytes() const { return event.arg1; }  // 0 where nothing was copied
};

// Of kDeviceMemory and kTorchMemory.
struct MemoryView {
  const Event& event;
  uint64_t address() const { return event.arg0; }
  uint64_t bytes() const { return event.arg1; }  // 0 of frees whose size is not told
};

struct ReservedView {
  const Event& event;
  uint64_t bytes() const { return event.arg1; }   // in all
  uint32_t device() const { return event.arg2; }  // type and index
};

// arg2 of tensor memory: (c10::DeviceType << 8) | index.
struct TorchDevice {
  uint32_t packed;
  uint32_t type() const { return packed >> 8; }
  uint32_t index() const { return packed & 0xff; }
};

struct GcPauseView {
  const Event& event;
  uint64_t collected() const { return event.arg0; }
  uint64_t uncollectable() const { return event.arg1; }
};

// What ran on a device, and the calls that submitted it.
struct SubmittedView {
  const Event& event;
  CorrelationId correlation() const { return CorrelationId{event.arg2}; }
};
using KernelView = SubmittedView;
using StreamWaitView = SubmittedView;

struct ApiCallView {
  const Event& event;
  ThreadId caller() const { return ThreadId{static_cast<uint32_t>(event.arg0)}; }
  CorrelationId correlation() const { return CorrelationId{event.arg2}; }
};

// Of kGpuCopy and kGpuMemset, and how many records of kGpuLost there were.
struct AmountView {
  const Event& event;
  uint64_t amount() const { return event.arg0; }
};

struct StepView {
  const Event& event;
  uint64_t number() const { return event.arg0; }
  uint64_t end_ns() const { return event.start_ns + event.duration_ns; }
};

struct ScopeView {
  const Event& event;
  // By the thread that began it. One that another thread ended says nothing of either.
  bool ended_here() const { return event.arg0 == 0; }
};

struct NonFiniteView {
  const Event& event;
  uint64_t bits() const { return event.arg0; }  // of a double
};

struct RunDelayView {
  const Event& event;
  uint64_t delay_ns() const { return event.arg0; }  // not the span that it was seen in
  uint64_t migrations() const { return event.arg1; }
  uint32_t preemptions() const { return event.arg2; }
};

// Of kHostSample and kGapSample.
struct SampleView {
  const Event& event;
  uint64_t weight_ns() const { return event.arg0; }
  uint64_t kind() const { return event.arg1; }  // state and quality
  static void Set(Event& event, uint64_t weight_ns, uint64_t kind) {
    event.arg0 = weight_ns;
    event.arg1 = kind;
  }
};

// ---- What the collector itself makes ----

struct IdleView {
  const Event& event;
  // Of the whole stretch, what lies in other events.
  uint64_t rest_ns() const { return event.arg1; }
  static void AddRest(Event& event, uint64_t ns) { event.arg1 += ns; }
};

struct SyncCostView {
  const Event& event;
  uint64_t needed_ns() const { return event.arg1; }
  static void Set(Event& event, uint64_t needed_ns) { event.arg1 = needed_ns; }
};

struct CoverageView {
  const Event& event;
  uint64_t busy_ns() const { return event.arg0; }
  uint64_t kernel_ns() const { return event.arg1; }
  static void Set(Event& event, uint64_t busy_ns, uint64_t kernel_ns) {
    event.arg0 = busy_ns;
    event.arg1 = kernel_ns;
  }
};

struct ForgottenView {
  const Event& event;
  uint64_t blocks() const { return event.arg0; }
  static void AddBlocks(Event& event, uint64_t blocks) { event.arg0 += blocks; }
};

}  // namespace lull::aggregate
