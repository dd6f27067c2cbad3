// Who is called once lull has had its look at a call of NCCL.
//
// A process may have several libraries of NCCL: each framework brings its own, is
// linked with one, or has RCCL, whose functions have the same names. A communicator of
// one must never reach another, and lull hooks some of their functions alone. So a
// caller is sent to whom it would have reached without us: the next one in the loader's
// order, or what its own object sees. That is looked for once for each place in the
// code that calls.
#pragma once

#include "preload/hooks/real.h"

namespace lull {

// One place that calls, and whom it means. Never changes once it is published.
struct NcclBound {
  const void* caller;  // return address
  void* original;
};

// By return address; what finds no room is looked for each time.
inline constexpr int kNcclPlaces = 8;
using NcclPlaces = std::atomic<const NcclBound*>[kNcclPlaces];
extern NcclPlaces g_nccl_places[size_t(NcclIndex::kCount)];

__attribute__((cold, noinline)) void* find_nccl_original(const char* name,
                                                         NcclIndex index,
                                                         const void* caller);

// Hot: mostly one load and one compare.
template <typename Function>
inline Function* nccl_original(const char* name, NcclIndex index, const void* caller) {
  for (const auto& place : g_nccl_places[size_t(index)]) {
    const NcclBound* bound = place.load(std::memory_order_acquire);
    if (bound == nullptr) break;
    if (bound->caller == caller) return reinterpret_cast<Function*>(bound->original);
  }
  return reinterpret_cast<Function*>(find_nccl_original(name, index, caller));
}

}  // namespace lull
