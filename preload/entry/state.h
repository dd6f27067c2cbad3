// What this process is to lull, and the one load that every hook begins with.
//
// The state lives in a page of its own that the kernel wipes in a fork child
// (MADV_WIPEONFORK), so that also after a raw clone() or _Fork() the child finds
// Mode::kUnknown and never touches its parent's segment. A vfork child shares
// the page, and may: its parent's thread sleeps meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/abi/segment.h"

namespace lull {

enum class Mode : uint32_t {
  kUnknown = 0,    // before the constructor, or a fork child that has not looked yet
  kInert = 1,      // for good: disabled, refused by the relay, or out of resources
  kCandidate = 2,  // records nothing until it does GPU work or allocates tensors
  kRecording = 3,  // has a segment that a relay reads
};

// Why a candidate should start to record.
// kFilter: it will install a seccomp filter, and the report is to know of it.
enum class Trigger { kPython, kGpuCall, kTensor, kFilter };

struct State {
  std::atomic<Mode> mode;
  std::atomic<uint32_t>
      generation;              // changes with every segment; never 0 while recording
  std::atomic<char*> segment;  // base of the mapping, valid while kRecording
};

// Never null: points to a static all-zero State before the constructor ran.
extern State* g_state __attribute__((visibility("hidden")));

// The segment if events are to be recorded now, else nullptr.
// Hot: two loads and two compares.
inline char* recording_segment() {
  State* state = g_state;
  if (__builtin_expect(state->mode.load(std::memory_order_acquire) != Mode::kRecording,
                       0)) {
    return nullptr;
  }
  char* segment = state->segment.load(std::memory_order_relaxed);
  if (abi::SegmentView(segment).control().armed.load(std::memory_order_relaxed) !=
      abi::kArmed) {
    return nullptr;
  }
  return segment;
}

// There is a segment, and nothing is to be recorded: a control step, or a job that
// sleeps.
inline bool is_asleep() {
  State* state = g_state;
  return state->mode.load(std::memory_order_acquire) == Mode::kRecording &&
         recording_segment() == nullptr;
}

// Cold. Moves kUnknown (fork child) and kCandidate on, makes and hands over the
// segment when `trigger` calls for it. Safe from any thread, at most one wins;
// the others go on unrecorded meanwhile. Preserves errno. Returns what
// recording_segment() would.
__attribute__((cold, noinline)) char* try_start_recording(Trigger trigger);

// For hooks that are reason enough by themselves (CUDA calls).
inline char* recording_segment_or_start(Trigger trigger) {
  State* state = g_state;
  Mode mode = state->mode.load(std::memory_order_acquire);
  if (__builtin_expect(mode == Mode::kUnknown || mode == Mode::kCandidate, 0)) {
    return try_start_recording(trigger);
  }
  return recording_segment();
}

// True when this process has CPython in it (decided once, in the constructor,
// and again when recording starts).
bool has_python();

}  // namespace lull
