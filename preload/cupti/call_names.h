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

// The length of `name` without CUPTI's suffix for the CUDA version that introduced a
// function: 16 for "cudaLaunchKernel_v7000". Pure.
size_t plain_name_length(const char* name);

// Asks CUPTI once per call id. Any thread, no locks. Belongs to one segment.
class CallNames {
 public:
  // False: not to be passed on. *text: its name in the arena, 0 if that is full.
  bool look_up(char* segment, const Api& api, Domain domain, uint32_t callback,
               abi::Ref* text);

 private:
  static constexpr uint32_t kIds = 2048;
  std::atomic<uint32_t> known_[2][kIds] = {};
};

}  // namespace lull::cupti
