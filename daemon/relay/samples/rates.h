// How often threads are looked at, and what that may cost. All numbers of the host
// sampler that one might want to change are here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lull::relay {

// Looks per second at one thread: while GPU work of its process is being traced, and
// else while it is armed. 385 looks tell a share within 5 points: 2 s of a window.
inline constexpr double kDenseRate = 200;
inline constexpr double kSparseRate = 10;

// The other threads of a DataLoader worker get this share of its rate: they mostly
// wait.
inline constexpr double kHelperShare = 0.25;

// Looks per second of one relay, shared out among all threads in proportion.
inline constexpr double kMostPerSecond = 2000;

// The sampler may use this share of one core. What it did not use is kept for bursts
// (windows), up to this much processor time. A job begins with that much: its code is
// read for the first time, which is expensive.
inline constexpr double kSamplerShare = 0.005;
inline constexpr uint64_t kSamplerCreditNs = 400'000'000;

// A look that began later than this after it was due is counted as late; if another one
// is due by then, too, it is skipped, and counted.
inline constexpr uint64_t kLateNs = 1'000'000;

// How often it is asked which processes are still there, and what other threads of a
// DataLoader worker run Python.
inline constexpr uint64_t kWatchPeriodNs = 200'000'000;
inline constexpr uint64_t kOthersPeriodNs = 500'000'000;

// A process with more threads that feed a GPU is rare; the others are left out.
inline constexpr size_t kMostThreads = 64;

// Frames of a stack from the innermost on, as the shim has it (abi::kMaxPythonFrames).
inline constexpr uint32_t kMostFrames = 128;

// Stacks of one process. Beyond it, a sample with a new stack counts as failed.
inline constexpr size_t kMostStacks = 50'000;
inline constexpr size_t kMostCodes = 20'000;
inline constexpr size_t kMostNames = 50'000;
// A target may make these as large as it likes: names; code with its line tables;
// stacks, as they are sent. So each kind is bounded, in bytes.
inline constexpr size_t kMostNameBytes = 32u << 20;
inline constexpr size_t kMostCodeBytes = 64u << 20;
inline constexpr size_t kMostStackBytes = 256u << 20;
inline constexpr size_t kMostLinesOfCode = 4096;

// A look that takes longer is dropped, and nobody waits for it: reading was held up.
inline constexpr uint64_t kLongestLookNs = 1'000'000'000;

}  // namespace lull::relay
