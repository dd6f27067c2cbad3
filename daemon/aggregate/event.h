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
  // GPU truth, see lull::abi::EventType.
  kGpuKernel = 9,
  kGpuCopy = 10,
  kGpuMemset = 11,
  kGpuGraph = 12,
  kApiCall = 13,
  kGpuStreamWait = 14,
  kGpuTracing = 15,
  kGpuLost = 16,
  kGpuMark = 17,
  kGpuDevice = 18,
  kStep = 19,
  kNonFinite = 20,
  kTorchReserved = 21,
  kScope = 22,
  kRunDelay = 32,
  kHostSample = 33,  // where a thread was; see lull.v1.EventColumns
  // Made by the collector, from what blame says (daemon/blame/blame.h); stored as
  // events of the process's derived ring.
  //              arg0       arg1                 tid
  //   Idle       0          rest of the whole    thread that it is judged by
  //   SyncCost   0          needed ns            that of the sync
  //   Coverage   busy ns    kernel ns            0
  //   Forgotten  blocks     0                    0
  //   GapSample  its weight state and quality    that of the sample
  //   EngineSample  as of GapSample
  // A stretch of Idle or Coverage ends where a bucket of level 0 ends; Idle goes on in
  // another with kFlagContinued. So any range of time clips both exactly.
  kFirstDerived = 128,
  kIdle = 128,
  kSyncCost = 129,
  kCoverage = 130,
  // Operations by the line that launched them. Only in cells, not stored one by one.
  kSubmission = 131,
  // cudaMalloc calls that followed a failed one and frees (MallocRetries). Only in
  // cells.
  kMallocRetry = 132,
  // What `released_series` had live when the job fell asleep. It is recorded when the
  // job wakes up, as nobody has seen which of those blocks were freed meanwhile.
  // LiveBlocks makes it; it is an event of the derived ring.
  kForgotten = 133,
  // A host sample that lies within an idle stretch of the thread that the stretch is
  // judged by. One for each device that idled then.
  kGapSample = 134,
  // A host sample without a stack, of a thread of PyTorch's engine, and the backward
  // work that it did (collector/ingest/engine_samples.h).
  kEngineSample = 135,
  // What the GPU did within regions (collector/ingest/region_feed.h): idle time by its
  // cause; traced time, of which `amount` was busy. Only in cells.
  kRegionIdle = 140,
  kRegionTraced = 141,
  // The part of a series of idle stretches, or of samples, that lies in a region
  // (collector/ingest/thread_regions.h). Only in cells.
  kRegionGap = 142,
  kRegionSample = 143,
  // Not events: these series only carry what is live in one allocator of one device, or
  // at one site (see Series).
  kTotalGroup = 253,
  kLineGroup = 254,
  kFunctionGroup = 255,
};

// Bits of Event::flags. The low eight equal lull::abi::EventFlag.
enum EventFlag : uint32_t {
  kFlagFree = 1 << 0,
  kFlagPinned = 1 << 1,
  kFlagAlone = 1 << 1,  // of kLaunch: those before its window were left out
  kFlagDrawn = 1 << 2,  // of kTorchMemory: drawn_blocks.h
  kFlagFailed = 1 << 3,
  kFlagFromPython = 1 << 5,
  kFlagUndrawn = 1 << 6,  // of kTorchMemory: another one stands for it
  kFlagBefore = 1 << 7,
  // Set by LiveBlocks: an allocation whose free had come in before it, from
  // another thread's ring. Of kTorchReserved: the next one had come in before it; it
  // changes nothing any more.
  kFlagFreedEarlier = 1 << 16,
  // Idle: goes on from the bucket before, where it was counted.
  kFlagContinued = 1 << 17,
};

// Shorter tensor allocations come from the allocator's free lists, and hold up nobody.
inline constexpr uint64_t kSlowAllocationNs = 20'000;

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
  // the block of its address; an allocation ends a block whose free was lost. What an
  // allocator reserves is one block, which each kTorchReserved replaces. Of
  // kFlagFreedEarlier the bytes are the nanoseconds after which that free came; the
  // series is what that free was taken from in error, or 0.
  uint32_t released_series = 0;
  uint64_t released_bytes = 0;
};

inline bool IsMemory(EventType type) {
  return type == EventType::kDeviceMemory || type == EventType::kTorchMemory;
}
// Summed up a second at a time, and not stored event by event.
inline bool IsOfCellsAlone(EventType type) {
  return type == EventType::kSubmission || type == EventType::kMallocRetry ||
         (type >= EventType::kRegionIdle && type <= EventType::kRegionSample);
}
// What changes what is live.
inline bool ChangesLive(EventType type) {
  return IsMemory(type) || type == EventType::kTorchReserved ||
         type == EventType::kForgotten;
}
// What ran on a device.
inline bool IsOperation(EventType type) {
  return type >= EventType::kGpuKernel && type <= EventType::kGpuGraph;
}
// A stretch of device time, which ranges clip instead of asking where it starts.
inline bool IsStretch(EventType type) {
  return type == EventType::kIdle || type == EventType::kCoverage;
}

}  // namespace lull::aggregate
