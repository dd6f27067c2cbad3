// Events as the collector thinks of them.
//
// An event says when, how long and with which arguments; what it *is* (type, API,
// stacks) is its series, a small integer of its process. Ingest looks a series up
// once; from then on, aggregates, stored blocks and queries deal in integers.
#pragma once

#include <cstdint>

namespace lull::aggregate {

// Values equal those of lull.v1.EventType; unknown ones are stored and counted.
enum class EventType : uint8_t {
  kNone = 0,
  kThreadStart = 1,
  kLaunch = 2,
  kSync = 3,
  kCopyAsync = 4,
  kDeviceMemory = 5,
  kTorchMemory = 6,
  kGcPause = 7,
  kHostWait = 8,
  // Not events: series that only carry what is live at one site (see Series).
  kLineGroup = 254,
  kFunctionGroup = 255,
};

// Bits of Event::flags. The low eight equal lull::abi::EventFlag.
enum EventFlag : uint32_t {
  kFlagFree = 1 << 0,
  kFlagPinned = 1 << 1,
  kFlagFailed = 1 << 3,
  kFlagFromPython = 1 << 5,
  // Set by LiveBlocks: an allocation whose free had come in before it, from
  // another thread's ring.
  kFlagFreedEarlier = 1 << 16,
};

struct Event {
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t duration_ns = 0;
  uint64_t arg0 = 0;
  uint64_t arg1 = 0;
  uint32_t arg2 = 0;
  uint32_t flags = 0;
  uint32_t tid = 0;
  uint32_t series = 0;
  // Memory events: whose block this event ended, and how large it was. A free ends
  // the block of its address; an allocation ends a block whose free was lost.
  uint32_t released_series = 0;
  uint64_t released_bytes = 0;
};

inline bool IsMemory(EventType type) {
  return type == EventType::kDeviceMemory || type == EventType::kTorchMemory;
}

}  // namespace lull::aggregate
