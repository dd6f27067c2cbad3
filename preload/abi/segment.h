// The shared-memory segment of one process image: header, control block, rings,
// interning index, arena.
//
//   offset           what                                   size
//   0                SegmentHeader                          4 KiB
//   kControlOffset   ControlBlock                           4 KiB
//   kOwnersOffset    atomic<OwnerWord>[kMaxRings]           32 KiB
//   kRingsOffset     RingHeader[kMaxRings]                  512 KiB
//   kTablesOffset    atomic<ChunkId>[kMaxRings][kRingChunks]  8 MiB
//   kIndexOffset     atomic<uint64_t>[kIndexSlots]          1 MiB   (writer's own)
//   kArenaOffset     entries                                6.4 MiB
//   kPoolOffset      Event[kPoolChunks][kChunkEvents]       24 MiB
//   kSegmentSize                                            40 MiB
//
// It is a memfd, sealed against shrinking and growing (so that a reader cannot
// be hit by SIGBUS), created by the shim and handed over by handshake.h. Pages
// exist once they are touched: a quiet process costs a few of them, and one of 64
// threads never more than 31.6 MiB, under the 32 MiB that a target may cost. Each
// thread beyond that adds its ring's table, 2 KiB. The shim asks for the memory of a
// page before it writes there (preload/ring/backing.h).
//
// All-zero bytes are the valid initial state of everything but the header's
// constant fields. A fork child never writes here: it makes its own segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/abi/arena.h"
#include "preload/abi/event.h"
#include "preload/abi/python_layout.h"
#include "preload/abi/ring.h"
#include "preload/abi/states.h"
#include "preload/abi/version.h"

namespace lull::abi {

// Written by the shim. Constant after the handshake, the atomics apart.
struct SegmentHeader {
  uint64_t magic;       // kSegmentMagic
  uint32_t version;     // kVersion
  uint32_t pid;         // as the target sees itself; the relay trusts SO_PEERCRED
  uint64_t size;        // kSegmentSize
  uint64_t created_ns;  // CLOCK_MONOTONIC
  uint64_t created_realtime_ns;          // CLOCK_REALTIME at the same moment
  std::atomic<uint32_t> python_version;  // (major << 8) | minor, 0 = no Python
  std::atomic<uint32_t> arena_used;      // bytes from kArenaOffset, 16-aligned
  std::atomic<uint64_t> arena_rejected;  // stacks or code objects that found no room
  std::atomic<uint64_t> lost_no_ring;  // events of threads that found no ring, found no
                                       // chunk for one, or waited too long for
                                       // recording to start
  // Hooked calls that were not recorded: a signal handler made them inside our own
  // work, or the thread had jumped out of a call, and they seemed to be a part of it.
  std::atomic<uint64_t> reentered;
  std::atomic<uint32_t> native_stacks;       // NativeStackState
  std::atomic<uint32_t> gc_hook;             // GcHookState
  std::atomic<uint64_t> ringless_gpu_calls;  // of threads without a ring; of the others
                                             // RingHeader::gpu_calls
  std::atomic<uint64_t> torch_allocations;   // > 0: it allocates tensors
  std::atomic<uint32_t> cupti_state;         // CuptiState
  std::atomic<uint32_t> cupti_version;       // cuptiGetVersion(); 0 = not loaded
  std::atomic<uint32_t> cupti_result;        // CUptiResult of the call that failed last
  std::atomic<uint32_t> step_hook;           // StepHookState
  std::atomic<uint64_t> cupti_dropped;       // records that CUPTI itself dropped
  std::atomic<uint64_t> gpu_records_lost;    // decoded, but the ring was full
  std::atomic<uint64_t> gpu_records_bad;     // without sense; not passed on
  std::atomic<uint64_t> gpu_self_ns;         // in our CUPTI calls and callbacks, on any
                                             // thread; part of no ring's self_ns
  std::atomic<uint32_t> rings_used;   // every ring that ever had an owner is below
  std::atomic<uint32_t> rings_taken;  // times that a thread took a ring
  std::atomic<uint32_t> chunks_used;  // of the pool; they lie in front
  std::atomic<uint32_t> ended;        // EndedBy: 0, or why recording ended
  // &PyCode_Type of the interpreter whose layout this is; 0: there is none whose frames
  // can be read. Stored with release: the layout is written before.
  std::atomic<uint64_t> python_code_type;
  PythonLayout python_layout;
  std::atomic<uint32_t> scope_hook;  // ScopeHookState
  // The part of the arena that holds names of scopes and their nesting.
  std::atomic<uint32_t> scope_bytes;
  std::atomic<uint64_t> scopes_unnamed;   // scopes whose names found no room there
  std::atomic<uint64_t> scopes_unopened;  // not recorded, or those that were open
                                          // around them: too many were open
  std::atomic<uint64_t> scopes_thinned;   // not recorded, to hold the budget
};

// Totals of the header that the relay passes on as they are, each as the field of
// lull.v1.ProcessCounters of the same name.
#define LULL_HEADER_TOTALS(TOTAL) \
  TOTAL(lost_no_ring)             \
  TOTAL(reentered)                \
  TOTAL(torch_allocations)        \
  TOTAL(cupti_dropped)            \
  TOTAL(gpu_records_lost)         \
  TOTAL(gpu_records_bad)          \
  TOTAL(gpu_self_ns)              \
  TOTAL(scopes_unnamed)           \
  TOTAL(scopes_unopened)          \
  TOTAL(scopes_thinned)

// Written by the relay, read by the shim with relaxed loads. The shim copies the
// built-in defaults in before the handshake, so that it works without a relay.
struct ControlBlock {
  std::atomic<uint32_t> armed;              // Armed
  std::atomic<uint32_t> thinning;           // Thinning, set by the governor
  std::atomic<uint64_t> wait_threshold_ns;  // shorter host waits are only summed
  std::atomic<uint64_t> late_launch_ns;     // a launch this long after the last
                                            // one takes a full stack
  std::atomic<uint32_t> gpu_mode;           // GpuMode
  // Windows in steps, as in torch.profiler.schedule: after `skip_first` steps, `wait`
  // steps without, `warmup` steps traced and thrown away, `active` steps traced, over
  // again `repeat` times (0: until the end). The shim counts steps where there are any.
  std::atomic<uint32_t> gpu_skip_first;
  std::atomic<uint32_t> gpu_wait;
  std::atomic<uint32_t> gpu_warmup;
  std::atomic<uint32_t> gpu_active;
  std::atomic<uint32_t> gpu_repeat;
  // Where there are no steps the relay goes by the clock: a TracingState, in force
  // while gpu_by_clock is 1 (kOff, kWarmUp or kActive).
  std::atomic<uint32_t> gpu_by_clock;
  std::atomic<uint32_t> gpu_clock_state;
  std::atomic<uint32_t> gpu_hold;  // 1: no tracing now, the budget is spent
  // Grows each time that the relay arms the process or changes its GPU plan while it is
  // armed: steps, and the windows that they drive, count from there. All above is
  // written before it.
  std::atomic<uint32_t> arming;
  // Since when the process is asleep, CLOCK_MONOTONIC; of use while `armed` is 0 and
  // written before it is. GPU tracing counts as off from there.
  std::atomic<uint64_t> asleep_since_ns;
  // 1: CUPTI is taken down after each window, where nobody else in the process uses it.
  std::atomic<uint32_t> gpu_finalize;
  // Control steps (states.h): of so many steps one is, 0: none; so many have ended; so
  // many of them by the relay. Since when the last one went on, and until when it did
  // or, while it goes on, may; CLOCK_MONOTONIC.
  std::atomic<uint32_t> control_steps;
  std::atomic<uint32_t> control_ended;
  std::atomic<uint32_t> control_cut;
  std::atomic<uint64_t> control_since_ns;
  std::atomic<uint64_t> control_until_ns;
  // Of 2^so many steps one is recorded, the others are control steps.
  std::atomic<uint32_t> recorded_halvings;
};
inline constexpr uint32_t kMostHalvings = 6;

// Words of the control block that the relay copies from the flags of the job, each from
// the field of lull.v1.JobSettings of the same name, and what is meant by a 0 there.
#define LULL_CONTROL_SETTINGS(SETTING)                     \
  SETTING(wait_threshold_ns, abi::kDefaultWaitThresholdNs) \
  SETTING(control_steps, 0u)

enum class GpuMode : uint32_t { kHost = 0, kWindow = 1, kContinuous = 2 };

// How much detail the governor has taken away. Counts and times of sync points,
// GC pauses and device memory are never thinned in a step that is recorded.
enum Thinning : uint32_t {
  kThinNothing = 0,       // 1 was less than half a step of what follows
  kThinNativeStacks = 2,  // no native stacks, no Python stacks of scopes
  kThinLaunches = 3,      // nor launches outside of windows, late-launch stacks, scopes
  kThinSteps = 4,         // told, never set: most steps rest (recorded_halvings)
};
// Tensors of this size keep their native stacks, too: they decide a report, and filling
// one takes a GPU longer than its stack takes us.
inline constexpr uint64_t kUnthinnedBytes = 16 << 20;

// A tensor's block of this size has its stack (of device memory: and its event). Of
// smaller ones some are drawn, by their bytes: one of s bytes with the probability
// 1 - exp(-s / kDrawnMeanBytes). It stands for so many times its bytes
// (daemon/aggregate/drawn_blocks.h).
inline constexpr uint64_t kSmallBytes = 64 << 10;
inline constexpr uint64_t kDrawnMeanBytes = 512 << 10;

inline constexpr uint64_t kDefaultWaitThresholdNs = 50'000;
inline constexpr uint64_t kDefaultLateLaunchNs = 100'000;

inline constexpr size_t kPage = 4096;
inline constexpr size_t kControlOffset = kPage;
inline constexpr size_t kOwnersOffset = 2 * kPage;
inline constexpr size_t kRingsOffset = kOwnersOffset + sizeof(OwnerWord) * kMaxRings;
inline constexpr size_t kTablesOffset = kRingsOffset + sizeof(RingHeader) * kMaxRings;
inline constexpr size_t kTableBytes = sizeof(ChunkId) * kRingChunks;
inline constexpr uint32_t kIndexSlots = 128 * 1024;
inline constexpr size_t kIndexOffset = kTablesOffset + kTableBytes * kMaxRings;
inline constexpr size_t kArenaOffset = kIndexOffset + sizeof(uint64_t) * kIndexSlots;
inline constexpr size_t kSegmentSize = 40u << 20;
inline constexpr size_t kPoolOffset = kSegmentSize - kChunkBytes * kPoolChunks;
inline constexpr size_t kArenaSize = kPoolOffset - kArenaOffset;

static_assert(sizeof(SegmentHeader) <= kPage && sizeof(ControlBlock) <= kPage);
static_assert(kRingsOffset % kPage == 0 && kTablesOffset % kPage == 0 &&
              kIndexOffset % kPage == 0 && kArenaOffset % kPage == 0 &&
              kPoolOffset % kPage == 0);
static_assert(kArenaOffset + (6u << 20) < kPoolOffset);
// What 64 threads can touch: 32 MiB.
static_assert(kSegmentSize - (kMaxRings - 64) * (kTableBytes + sizeof(RingHeader)) <
              32u << 20);

// Typed views of a mapped segment. No checks: the relay makes its own.
class SegmentView {
 public:
  explicit SegmentView(void* base) : base_(static_cast<char*>(base)) {}

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  ControlBlock& control() const {
    return *reinterpret_cast<ControlBlock*>(base_ + kControlOffset);
  }
  RingHeader& ring(uint32_t i) const {
    return reinterpret_cast<RingHeader*>(base_ + kRingsOffset)[i];
  }
  // Of all threads. > 0: this process does GPU work.
  uint64_t gpu_calls() const {
    uint64_t calls = header().ringless_gpu_calls.load(std::memory_order_relaxed);
    uint32_t used = header().rings_used.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used && i < kMaxRings; ++i) {
      calls += ring(i).gpu_calls.load(std::memory_order_relaxed);
    }
    return calls;
  }
  std::atomic<OwnerWord>& owner(uint32_t i) const {
    return reinterpret_cast<std::atomic<OwnerWord>*>(base_ + kOwnersOffset)[i];
  }
  std::atomic<ChunkId>* table(uint32_t ring) const {
    return reinterpret_cast<std::atomic<ChunkId>*>(base_ + kTablesOffset +
                                                   kTableBytes * ring);
  }
  Event* chunk(ChunkId id) const {
    return reinterpret_cast<Event*>(base_ + kPoolOffset + kChunkBytes * id);
  }
  // Of an event that is committed and not given back.
  Event& slot(uint32_t ring, uint64_t position) const {
    uint64_t number = position / kChunkEvents;
    ChunkId id = table(ring)[number % kRingChunks].load(std::memory_order_relaxed);
    return chunk(id)[position % kChunkEvents];
  }
  std::atomic<uint64_t>* index() const {
    return reinterpret_cast<std::atomic<uint64_t>*>(base_ + kIndexOffset);
  }
  char* arena() const { return base_ + kArenaOffset; }
  char* entry(Ref ref) const { return arena() + size_t{ref} * 16; }
  char* base() const { return base_; }

 private:
  char* base_;
};

}  // namespace lull::abi
