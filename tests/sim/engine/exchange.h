// Kernels that end together with kernels of other processes: the collectives of a
// communicator.
//
// Plain data across the library's border, like observer.h. libnccl.so.2 of
// tests/sim/nccl is the only user. What is pointed to lives as long as the process.
#pragma once

#include <cstdint>

namespace lull::sim {

// What became of one.
struct Exchanged {
  int64_t end_ns = -1;  // -1: not known yet, lull_sim_exchanged() will tell
  int64_t sequence =
      -1;             // among the collectives of the communicator; -1: messages alone
  int32_t error = 0;  // ncclResult_t
};

struct Exchange {
  const void* member;     // one rank of one communicator: its kernels come one by one
  uint64_t communicator;  // the same on all ranks
  uint64_t parent;        // communicator that it was split from, or 0
  uint32_t rank, size;
  uint32_t calls;       // fused into this kernel
  uint64_t bytes;       // of the calls
  double moved;         // bytes over the rank's links, which decide how long it takes
  const char* members;  // their ranks in the first communicator: "0,2,..."
  const char* names;    // of the calls: "AllReduce,AllReduce"

  // With the engine's lock held, once it is known when the kernel starts; it may be in
  // the future. `duration_ns` is what it takes from the last member's start on. Neither
  // blocks nor calls the driver.
  void (*begin)(const Exchange*, uint64_t kernel, int64_t start_ns, int64_t duration_ns,
                Exchanged*);
};

}  // namespace lull::sim
