// When a finding is worth a line. All thresholds are here, each with its reason.
#pragma once

#include <cstdint>

namespace lull {

// ---- With GPU truth: percent of traced time ----

// Waiting for data. torch.profiler's own viewer also warns from 5 % of a step on.
inline constexpr double kIdleDataPercent = 5;
// Each of these is one change at one line: worth it from one percent on.
inline constexpr double kWastedSyncPercent = 1;
inline constexpr double kIdleGcPercent = 1;
inline constexpr double kIdleAllocatorPercent = 1;
inline constexpr double kIdleRunQueuePercent = 1;
inline constexpr double kIdleGilPercent = 1;
inline constexpr double kIdleHostWaitPercent = 1;
inline constexpr double kIdleLaunchCallPercent = 1;
// These change how the program works: they are worth it only from more on.
inline constexpr double kIdleLaunchPercent = 5;
inline constexpr double kIdleLatencyPercent = 10;
inline constexpr double kIdleDependencyPercent = 5;
inline constexpr double kIdleHostCodePercent = 3;  // of one pair of lines
inline constexpr double kZeroGradPercent = 1;      // kernels that fill gradients with 0
// Communication that no computation hides, of the median step.
inline constexpr double kCommunicationPercent = 10;

// Matrix products and convolutions, of all kernel time, none of them on tensor cores.
inline constexpr double kMatrixPercent = 30;
// Volta is the first with tensor cores, Ampere the first that has TF32.
inline constexpr uint32_t kTensorCoreCapability = 70;
inline constexpr uint32_t kTf32Capability = 80;
// The finding is ranked by half of the time of these kernels: on every such device
// tensor cores have at least twice the throughput of FP32.
inline constexpr uint64_t kTensorCoreSpeedUp = 2;

// From a launch to its start. On an H100 that nobody shares it is 10 us on average (8 of
// them in the call, with CUPTI), on one that 30 processes take turns on 56 to 76
// (docs/gpu_results.md).
inline constexpr uint64_t kOrdinaryLatencyNs = 40'000;

// ---- Without GPU truth: percent of Shares::working_ns ----

inline constexpr double kDataWaitPercent = 5;
inline constexpr double kOldGcPercent = 1;
inline constexpr double kDeviceMemoryPercent = 1;
inline constexpr double kPageableCopyPercent = 1;
inline constexpr double kSyncPercent = 5;
// One rank at one line, that all others wait for.
inline constexpr double kLateRankPercent = 1;

// ---- Both ----

// The unused part of the most that a caching allocator held. It rounds blocks up, so
// that some is always unused.
inline constexpr double kUnusedReservedPercent = 20;
// Fewer calls than this at one site are set-up, not a loop.
inline constexpr uint64_t kLoopCalls = 16;
// Fewer full garbage collections than this are set-up, too.
inline constexpr uint64_t kOftenCollected = 3;
// A copy of at most this many bytes on average reads a value back.
inline constexpr uint64_t kReadBackBytes = 4096;

}  // namespace lull
