// One event, as the shim writes it and the relay reads it.
//
// An event is plain old data of fixed size, so that the hot path is six stores
// and a release, and so that the relay can copy it out before it looks at it.
// Everything of variable length (stacks, code objects) lives in the arena
// (arena.h) and is named here by a Ref.
//
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
};
inline constexpr uint8_t kEventTypeCount = 9;

// Bits of Event::flags.
enum EventFlag : uint8_t {
  kFlagFree = 1 << 0,          // memory events: this releases arg0
  kFlagPinned = 1 << 1,        // memory: host pinned; copies: host side is pinned
  kFlagPageable = 1 << 2,      // copies: the host side is pageable memory
  kFlagFailed = 1 << 3,        // the call returned an error code
  kFlagStackThinned = 1 << 4,  // the governor left the stack out on purpose
  kFlagFromPython = 1 << 5,    // host waits: called by the interpreter itself
  kFlagLate = 1 << 6,          // launch after a pause: py_stack is a full stack
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
//   TorchMemory   address                  bytes (0: a free whose device (below)
//                                          size is not told)
//   GcPause       objects collected        uncollectable         generation
//   HostWait      fd or 0                  result, as int64      0
struct Event {
  uint64_t start_ns;
  uint64_t duration_ns;
  uint64_t arg0;
  uint64_t arg1;
  Ref py_stack;      // kPythonStack entry, or 0
  Ref native_stack;  // kNativeStack entry, or 0
  uint32_t arg2;
  uint16_t api;  // HookId of hook_list.h, 0 when no hook is involved
  EventType type;
  uint8_t flags;
};

// TorchMemory's arg2: (device_type << 8) | (device_index & 0xff), with
// c10::DeviceType numbers (CPU 0, CUDA 1; c10/core/DeviceType.h).
// CopyKind is cudaMemcpyKind (0 H2H, 1 H2D, 2 D2H, 3 D2D, 4 default).

static_assert(sizeof(Event) == 48);
static_assert(alignof(Event) == 8);
static_assert(std::is_trivially_copyable_v<Event> && std::is_standard_layout_v<Event>);

}  // namespace lull::abi
