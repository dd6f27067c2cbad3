// What an event is, apart from when: the unit that aggregates are kept for.
#pragma once

#include <cstdint>

#include "daemon/aggregate/event_views.h"

namespace lull::aggregate {

// Allocators of memory events, the low bits of their variant.
enum class Allocator : uint8_t {
  kCuda = 0,
  kPinned = 1,
  kTorchCuda = 2,
  kTorchCpu = 3,
  kTorchOther = 4,
};
const char* AllocatorName(Allocator allocator);

inline constexpr uint8_t kAllocatorMask = 0x07;
// A small block that another stands for. It has no site, and is part of wholes alone.
inline constexpr uint8_t kVariantUndrawn = 0x08;
inline constexpr uint8_t kVariantFree = 0x10;
inline constexpr uint8_t kVariantFailed = 0x20;
// What an allocator had handed out before we looked: one block, which shrinks.
inline constexpr uint8_t kVariantBefore = 0x40;
// A small block that stands for others (drawn_blocks.h): cells of its series, of its
// line and of its function have what it stands for, those of wholes what it is.
inline constexpr uint8_t kVariantDrawn = 0x80;
// An operation outside of traced time, while tracing warmed up. No report counts it.
inline constexpr uint8_t kVariantUntraced = 1;

// Of scopes. Values equal those of lull::abi::ScopeKind.
enum class ScopeKind : uint8_t {
  kUser = 0,
  kData = 1,       // __next__ of a DataLoader's iterator
  kDataAside = 2,  // the same where it holds up no training
};

// What was submitted; values equal those of blame::OperationKind.
enum class SubmissionKind : uint8_t { kKernel = 0, kCopy = 1, kMemset = 2, kGraph = 3 };

// Ids are unique within the job for APIs, stacks and sites, and within the process
// for series. 0 is "none" everywhere.
struct Series {
  EventType type = EventType::kNone;
  // The part of flags and arguments that tells series apart: the allocator (with the
  // two bits above), the GC generation, the WaitKind, the ScopeKind, the source of a
  // step, whether an operation was traced, the kind of a submission, the cause of an
  // idle stretch, or what a host sample is (SampleVariant).
  uint8_t variant = 0;
  uint32_t api = 0;
  uint32_t python_stack = 0;
  uint32_t native_stack = 0;
  uint32_t line_site = 0;      // file, line and function of the site
  uint32_t function_site = 0;  // file and function of the site
  // Allocations: the series that carry what is live at the line and function as a
  // whole. Peaks do not add up, so each grouping needs its own.
  uint32_t line_group = 0;
  uint32_t function_group = 0;
  uint32_t total_group = 0;  // the same for all that the allocator has on the device
  // GPU kernels: id of the kernel and its launch shape; their submissions: id of its
  // name; copies: their kinds, as ShapeOf packs them; idle stretches and coverage: the
  // device; tensor memory: the index of its device; samples in gaps: the series of the
  // idle stretch; parts in a region: the series that they are parts of. Correlation ids
  // and the like are arguments and never tell series apart.
  uint32_t shape = 0;
  uint32_t gpu_stream = 0;  // operations and stream waits
  // Idle stretches: the launches on either side. The sites above are those of the
  // culprit.
  uint32_t before_line = 0;
  uint32_t before_function = 0;
  uint32_t after_line = 0;
  uint32_t after_function = 0;
  friend bool operator==(const Series&, const Series&) = default;
};

// The part of an event that decides on its variant, before any stack is looked at.
// Host waits get theirs from ClassifyWait but where they are part of another,
// operations from when tracing was on, samples from SampleVariant.
uint8_t VariantOf(EventType type, const Event& event);

inline bool IsOfTorch(EventType type) {
  return type == EventType::kTorchMemory || type == EventType::kTorchReserved;
}
inline constexpr DeviceId kNoDevice{0xff};  // of tensor memory of the host

// The part of an event that decides on its shape: for copies, their kind and memories,
// for tensor memory the device's index. Kernels have theirs by reference.
inline uint32_t ShapeOf(EventType type, const Event& event) {
  if (IsOfTorch(type)) return IndexOf(MemoryView{event}.device());
  return type == EventType::kGpuCopy ? GpuCopyView{event}.shape().packed : 0;
}

// ---- What variant and shape mean, by the type ----

// Of memory, and of the series that stand for wholes of it.
inline Allocator AllocatorOf(const Series& memory) {
  return static_cast<Allocator>(memory.variant & kAllocatorMask);
}
inline bool IsFree(const Series& memory) {
  return (memory.variant & kVariantFree) != 0;
}
inline bool IsFailed(const Series& memory) {
  return (memory.variant & kVariantFailed) != 0;
}
// Of operations: within traced time.
inline bool IsTraced(const Series& operation) {
  return operation.variant != kVariantUntraced;
}
inline uint32_t GenerationOf(const Series& pause) { return pause.variant; }
// Of idle stretches and regions: a number of lull.v1.GapCause.
inline uint8_t CauseOf(const Series& idle) { return idle.variant; }
// Of idle stretches, coverage, and tensor memory.
inline DeviceId DeviceOf(const Series& series) { return DeviceId{series.shape}; }
inline uint32_t KernelOf(const Series& kernel) { return kernel.shape; }
inline SubmissionKind SubmissionKindOf(const Series& submission) {
  return static_cast<SubmissionKind>(submission.variant);
}
inline uint32_t KernelNameOf(const Series& submission) { return submission.shape; }
inline CopyShape CopyShapeOf(const Series& copy) { return {copy.shape}; }
// The series of the idle stretch in which a kGapSample lies.
inline uint32_t GapOf(const Series& sample) { return sample.shape; }
// The series of which a kRegionGap or kRegionSample is a part.
inline uint32_t WholeOf(const Series& part) { return part.shape; }

// True for what is part of a whole: neither a free nor a failure.
inline bool IsAllocation(const Series& series) {
  return IsMemory(series.type) && !IsFree(series) && !IsFailed(series);
}
inline bool IsBefore(const Series& series) {
  return IsMemory(series.type) && (series.variant & kVariantBefore) != 0;
}
inline bool IsDrawn(const Series& series) {
  return series.type == EventType::kTorchMemory &&
         (series.variant & kVariantDrawn) != 0;
}
inline bool IsUndrawn(const Series& series) {
  return series.type == EventType::kTorchMemory &&
         (series.variant & kVariantUndrawn) != 0;
}
// True for what makes something live: also for the size of what is reserved.
inline bool AddsLive(const Series& series) {
  return IsAllocation(series) || series.type == EventType::kTorchReserved;
}
inline ScopeKind ScopeKindOf(const Series& scope) {
  return static_cast<ScopeKind>(scope.variant);
}
// A DataLoader's __next__ that a training waits for.
inline bool IsLoading(const Series& series) {
  return series.type == EventType::kScope && ScopeKindOf(series) == ScopeKind::kData;
}
// Which series carries the whole that a series which AddsLive is a part of.
inline uint32_t TotalOf(uint32_t id, const Series& series) {
  return series.type == EventType::kTorchReserved ? id : series.total_group;
}

}  // namespace lull::aggregate
