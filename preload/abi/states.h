// Words in the header of a segment, which the shim writes, and in its control block.
// The words for others are in proto/events.proto; tests/daemon/vocabulary_test.cc holds
// the two together.
#pragma once

#include <cstdint>

namespace lull::abi {

// What hooks do: ControlBlock::armed. The relay writes the first two. The shim goes from
// kArmed to kControlStep; from there back it goes by begin_to_wake() and wake()
// (control_step.h), and so does the relay once the step has lasted for too long. All by
// compare-and-swap, so that a process that was put to sleep stays asleep.
enum Armed : uint32_t {
  kAsleep = 0,  // record nothing, cost nothing
  kArmed = 1,
  kControlStep = 2,  // as asleep, but the step itself is recorded: what steps take
                     // without lull (docs/overhead.md)
  kControlStepEnds = 3,  // for a moment
};

// Recording ends for good, except with kUnread: a relay that reads again wakes the
// process up. The word stays as it is then.
enum class EndedBy : uint32_t {
  kNoMemory = 1,    // the system gave no memory for a page
  kFilter = 2,      // the process installed a seccomp filter, which might kill for ours
  kUnanswered = 3,  // no relay answered in time: nothing was ever recorded
  kUnread = 4,      // nobody has read for a minute: the relay seems to be gone
};

enum class NativeStackState : uint32_t { kUnknown = 0, kOn = 1, kNoLibrary = 2 };
enum class GcHookState : uint32_t { kNoPython = 0, kPending = 1, kOn = 2, kFailed = 3 };

enum class CuptiState : uint32_t {
  kUnused = 0,     // --gpu host, or no GPU call yet
  kNoLibrary = 1,  // none mapped, none found
  kTooOld = 2,     // before 11.8
  kFailed = 3,     // cupti_result says how; not tried again
  kReady = 4,      // loaded, not tracing now
  kTracing = 5,
  kYielded = 6,  // another CUPTI user has it
};
enum class StepHookState : uint32_t {
  kNone = 0,
  kPending = 1,
  kOn = 2,
  kUnavailable = 3
};
// Whether record_function's scopes are told, DataLoader's among them.
enum class ScopeHookState : uint32_t {
  kNone = 0,     // no Python
  kPending = 1,  // no PyTorch yet
  kOn = 2,
  kUnavailable = 3,  // a PyTorch that is not known, or without the functions
};

}  // namespace lull::abi
