// What an event is, apart from when: the unit that aggregates are kept for.
#pragma once

#include <cstdint>

#include "daemon/aggregate/event.h"

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

inline constexpr uint8_t kAllocatorMask = 0x0f;
inline constexpr uint8_t kVariantFree = 0x10;
inline constexpr uint8_t kVariantFailed = 0x20;

// Ids are unique within the job for APIs, stacks and sites, and within the process
// for series. 0 is "none" everywhere.
struct Series {
  EventType type = EventType::kNone;
  // What of flags and arg2 tells series apart: the allocator (with the two bits
  // above), the GC generation, or the WaitKind.
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
};

// The part of an event that decides on its variant, before any stack is looked at.
// Host waits get theirs from ClassifyWait.
uint8_t VariantOf(EventType type, uint32_t flags, uint32_t arg2);

// True for a call that hands out memory: neither a free nor a failure.
inline bool IsAllocation(const Series& series) {
  return IsMemory(series.type) &&
         (series.variant & (kVariantFree | kVariantFailed)) == 0;
}

}  // namespace lull::aggregate
