// One event, as the shim writes it and the relay reads it.
//
// An event is plain old data of fixed size, so that the hot path is six stores
// and a release, and so that the relay can copy it out before it looks at it.
// Everything of variable length (stacks, code objects) lives in the arena
// (arena.h) and is named here by a Ref.
// Writer: the thread that owns the ring (ring.h). Reader: the relay. The
// reader treats every field as hostile.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lull::abi {

// Values are part of the ABI and equal those of lull.v1.EventType in
// proto/events.proto. Append only.
enum class EventType : uint8_t {
  kNone = 0,          // never written
  kThreadStart = 1,   // a thread took this ring; arg0 = kernel thread id
  kLaunch = 2,        // kernel or graph launch; py_stack is a tip (one frame)
  kSync = 3,          // the host blocked, or may have, until the device was done
  kCopyAsync = 4,     // a copy or memset that was submitted without blocking
  kDeviceMemory = 5,  // cudaMalloc/cudaFree and relatives, pinned memory too
  kTorchMemory = 6,   // one report of a PyTorch allocator
  kGcPause = 7,       // one collection of CPython's cyclic garbage collector
  kHostWait = 8,      // the thread waited on a lock, a descriptor or a clock
  // GPU truth, decoded from CUPTI's activity records. The thread that writes them is
  // whichever CUPTI calls back on; their times are those of the device or of the
  // call that the record is about, converted to CLOCK_MONOTONIC.
  kGpuKernel = 9,       // one kernel ran
  kGpuCopy = 10,        // one memcpy ran
  kGpuMemset = 11,      // one memset ran
  kGpuGraph = 12,       // one whole graph launch ran (its nodes are not told apart)
  kApiCall = 13,        // a runtime or driver call, as CUPTI saw it
  kGpuStreamWait = 14,  // a stream was told to wait for an event
  kGpuTracing = 15,     // tracing changed its state
  kGpuLost = 16,        // records of this span were lost
  kGpuMark = 17,        // every operation that ended before start_ns is delivered
  kGpuDevice = 18,      // a device that this process sees
  kStep = 19,           // a training step; of the first, with no known start, 0 ns
  kNonFinite = 20,      // a NaN or infinity was read out of a tensor
  kTorchReserved = 21,  // a caching allocator holds more or less of the device's memory
  kScope = 22,          // a region that the program or a library named has ended
};
inline constexpr uint8_t kEventTypeCount = 23;

// Bits of Event::flags.
enum EventFlag : uint8_t {
  kFlagFree = 1 << 0,          // memory events: this releases arg0
  kFlagAlone = 1 << 1,         // Launch, in a window: those before it were left out
  kFlagPinned = 1 << 1,        // memory: host pinned; copies: host side is pinned
  kFlagPageable = 1 << 2,      // copies: the host side is pageable memory
  kFlagDrawn = 1 << 2,         // TorchMemory: a small block that stands for others
  kFlagFailed = 1 << 3,        // the call returned an error code
  kFlagCutOff = 1 << 3,        // Step: a control step; another event told of its rest
  kFlagStackThinned = 1 << 4,  // the governor left the stack out on purpose
  kFlagFromPython = 1 << 5,    // host waits: called by the interpreter itself
  kFlagLate = 1 << 6,          // launch after a pause: py_stack is a full stack
  kFlagUndrawn = 1 << 6,       // TorchMemory: a small block that another stands for
  kFlagBefore = 1 << 7,        // TorchMemory: all that was allocated before we looked
};

// A reference into the arena: byte offset / 16. 0 means "none".
using Ref = uint32_t;

// 48 bytes, no padding. Times are CLOCK_MONOTONIC of the host in nanoseconds.
//
//   type          arg0                     arg1                  arg2
//   ThreadStart   kernel tid               0                     0
//   Launch        stream handle            function handle       0
//   Sync          stream/event handle      bytes copied or 0     CopyKind
//   CopyAsync     stream handle            bytes                 CopyKind
//   DeviceMemory  address                  bytes (0 on free)     0
//   TorchMemory   address (0: kFlagBefore) bytes (0: a free whose device (below)
//                                          size is not told)
//   GcPause       objects collected        uncollectable         generation
//   HostWait      fd or 0                  result, as int64      1: within a scope of
//                                                                kind kData
//   GpuKernel     graph id, 0 = none       graph node id         correlation id
//   GpuCopy       bytes                    copy shape (below)    correlation id
//   GpuMemset     bytes                    graph id              correlation id
//   GpuGraph      graph id                 0                     correlation id
//   ApiCall       kernel tid of caller     0                     correlation id
//   GpuStreamWait kernel tid or 0          CUPTI event id        correlation id
//   GpuTracing    TracingState             TracingReason         window number
//   GpuLost       records                  0                     0
//   GpuMark       0                        0                     0
//   GpuDevice     0                        0                     device ordinal
//   Step          number, from 1           ns that hooks rested  StepSource
//   NonFinite     the value as a double     0                     0
//   TorchReserved bytes allocated in all   bytes reserved in all device (below)
//   Scope         tid that began it, where nesting depth,        ScopeKind
//                 another one ended it;    1 = outermost |
//                 else 0                   ScopeSource << 32
//
// Of Scope native_stack is a kScopeStack entry: its name and those around it, 0 where
// the names found no room.
// Of the GPU events py_stack and native_stack are other entries of the arena:
//   GpuKernel               py_stack: kKernel     native_stack: kGpuStream
//   GpuCopy, GpuMemset,     py_stack: 0           native_stack: kGpuStream
//   GpuGraph, GpuStreamWait
//   ApiCall                 py_stack: kText, the call's name; native_stack: 0
//   GpuDevice               py_stack: kGpuDevice; native_stack: 0
// and ApiCall's api is kRuntimeCallBase or kDriverCallBase + CUPTI's callback id.
struct Event {
  uint64_t start_ns;
  uint64_t duration_ns;
  uint64_t arg0;
  uint64_t arg1;
  Ref py_stack;      // kPythonStack or kBackward entry, or 0
  Ref native_stack;  // kNativeStack entry, or 0
  uint32_t arg2;
  uint16_t api;  // HookId of hook_list.h, 0 when no hook is involved
  EventType type;
  uint8_t flags;
};

// TorchMemory's and TorchReserved's arg2: (device_type << 8) | (device_index & 0xff),
// with c10::DeviceType numbers (CPU 0, CUDA 1; c10/core/DeviceType.h). CopyKind is of
// syncs that copy, and of memsets, which are kDeviceToDevice.

// GpuCopy's arg1: GpuCopyKind | GpuMemoryKind of the source << 8 | that of the
// destination << 16 | graph id << 32.

// CUPTI's calls beside the hooks' ids (hook_list.h stays far below).
inline constexpr uint16_t kRuntimeCallBase = 4096;
inline constexpr uint16_t kDriverCallBase = 8192;
inline constexpr uint16_t kCallIdEnd = 12288;

enum class TracingState : uint32_t {
  kOff = 0,
  kWarmUp = 1,  // records flow, and are to be thrown away
  kActive = 2,
  kYielded = 3,  // another CUPTI user has it
};
enum class TracingReason : uint32_t {
  kSchedule = 0,      // a window began or ended as planned
  kOtherUser = 1,     // torch.profiler or another CUPTI user came or went
  kBudget = 2,        // the governor
  kForeignClock = 3,  // another user's timestamp callback made records unreadable
  kError = 4,         // a CUPTI call failed; SegmentHeader::cupti_result
  kProcessEnd = 5,
  kDisarmed = 6,  // the process was put to sleep
};
enum class StepSource : uint32_t { kOptimizer = 1, kNvtxRange = 2 };
// From where to where a hooked call copies: ours, whatever CUDA or HIP call it
// (preload/hooks/copy.cc, daemon/import/). kUnknown: the call does not say, and neither
// do its pointers.
enum class CopyKind : uint32_t {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kUnknown = 4,
};
// From where to where a copy went on the device, and what memory that was: ours, too.
// preload/cupti/decode.cc makes them of CUPTI's numbers. kUnknown: also what a newer
// CUPTI tells.
enum class GpuCopyKind : uint8_t {
  kUnknown = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kHostToArray = 3,
  kArrayToHost = 4,
  kArrayToArray = 5,
  kArrayToDevice = 6,
  kDeviceToArray = 7,
  kDeviceToDevice = 8,
  kHostToHost = 9,
  kPeerToPeer = 10,
};
enum class GpuMemoryKind : uint8_t {
  kUnknown = 0,
  kPageable = 1,
  kPinned = 2,
  kDevice = 3,
  kArray = 4,
  kManaged = 5,
  kDeviceStatic = 6,
  kManagedStatic = 7,
};
enum class ScopeSource : uint32_t { kRecordFunction = 1, kNvtx = 2 };
enum class ScopeKind : uint32_t {
  kUser = 0,
  kData = 1,       // __next__ of a DataLoader's iterator
  kDataAside = 2,  // the same on a thread whose waits hold up no training
};

static_assert(sizeof(Event) == 48);
static_assert(alignof(Event) == 8);
static_assert(std::is_trivially_copyable_v<Event> && std::is_standard_layout_v<Event>);

}  // namespace lull::abi
