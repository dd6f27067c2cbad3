// What the trainers do, in numbers: shared by the programs and by the tests that
// compare a report, or the ground truth, with them. One `inline constexpr int`
// a line; expected.py reads them too.
#pragma once

namespace lull::puppets {

// trainer.cu and trainer.py: one training of kSteps steps.
inline constexpr int kSteps = 20;
inline constexpr int kForwardKernels = 8;    // a step
inline constexpr int kBackwardKernels = 12;  // a step
inline constexpr int kOptimizerKernels = 1;  // a step
inline constexpr int kDeviceSyncPeriod = 5;  // cudaDeviceSynchronize in every 5th step
inline constexpr int kAllocationPeriod = 4;  // cudaMalloc and cudaFree in every 4th
inline constexpr int kBatchBytes = 262144;   // host to device each step: pageable, and
                                             // as much again pinned
inline constexpr int kWorkspaceBytes = 1048576;

// What follows from it for a whole run.
inline constexpr int kKernels = 420;         // kSteps * (8 + 12 + 1)
inline constexpr int kLossReads = 20;        // pageable copy to the host + stream sync
inline constexpr int kDeviceSyncs = 5;       // four in the loop, one at the end
inline constexpr int kEventSyncs = 1;        // the time of the last step
inline constexpr int kPageableUploads = 20;  // blocking
inline constexpr int kPinnedUploads = 20;    // not blocking
inline constexpr int kWorkspaces = 5;        // cudaMalloc in the loop, and cudaFree
inline constexpr int kSetupAllocations = 2;  // cudaMalloc before the loop: model, batch

static_assert(kKernels ==
              kSteps * (kForwardKernels + kBackwardKernels + kOptimizerKernels));
static_assert(kDeviceSyncs == kSteps / kDeviceSyncPeriod + 1);
static_assert(kWorkspaces == kSteps / kAllocationPeriod);
static_assert(kLossReads == kSteps && kPageableUploads == kSteps &&
              kPinnedUploads == kSteps);

// threads.cu: each thread launches on its own default stream and waits for it.
inline constexpr int kThreads = 4;
inline constexpr int kThreadKernels = 50;
inline constexpr int kThreadSyncs = 5;

// graph.cu: capture on one stream, replay.
inline constexpr int kGraphNodes = 6;  // memset, four kernels, copy to pinned memory
inline constexpr int kGraphKernels = 4;
inline constexpr int kGraphLaunches = 10;

// two_runtimes.cc and local_runtime.cc: each runtime's part.
inline constexpr int kPartKernels = 10;

}  // namespace lull::puppets
