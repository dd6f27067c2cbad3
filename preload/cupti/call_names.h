// Which runtime and driver calls are passed on, and under what name. CUPTI reports
// every call; what matters is what submits work to the device or waits for it.
#pragma once

#include <atomic>

#include "preload/abi/segment.h"
#include "preload/cupti/types.h"

namespace lull::cupti {

// True for the names of calls that are passed on: launches, copies, memsets, graphs,
// prefetches, synchronisations, waits of streams. Pure.
bool is_wanted_call(const char* name);

// What a call that succeeds puts on a stream.
enum class Submits : uint8_t {
  kNothing,  // or what cannot be told by its name
  kKernels,  // a kernel or a graph
  kCopy,     // also a memset
  kCaptureBegin,
  kCaptureEnd,
};

// By the name. Pure.
Submits what_submits(const char* name);

// The length of `name` without CUPTI's suffix for the CUDA version that introduced a
// function: 16 for "cudaLaunchKernel_v7000". Pure.
size_t plain_name_length(const char* name);

// Asks CUPTI once per call id and segment. Any thread, no locks.
class CallNames {
 public:
  // False: not to be passed on. *text: its name in the arena of `segment`, which is
  // that of `generation` (State); 0 if that is full.
  bool look_up(char* segment, uint32_t generation, const Api& api, Domain domain,
               uint32_t callback, abi::Ref* text);

  // Of one that was looked up before.
  Submits submits(Domain domain, uint32_t callback) const {
    if (callback >= kIds) return Submits::kNothing;
    return submits_[domain == Domain::kRuntime][callback].load(
        std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kIds = 2048;
  // The generation that it was asked for, and the answer: one word, since threads that
  // decode for one segment and for the next may be at it at once.
  std::atomic<uint64_t> known_[2][kIds] = {};
  std::atomic<Submits> submits_[2][kIds] = {};
};

}  // namespace lull::cupti
