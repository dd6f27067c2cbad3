// Several ranks in one process, on one device: for tests of the stand-in for NCCL.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/driver_fixture.h"
#include "tests/sim/nccl/api.h"

namespace lull::sim::nccl {

inline constexpr int kFloat = 7, kSum = 0;

// clang-format off
#define SIM_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion, (int*)) \
  X(ncclGetUniqueId, (UniqueId*)) \
  X(ncclCommInitRank, (void**, int, UniqueId, int)) \
  X(ncclCommInitAll, (void**, int, const int*)) \
  X(ncclCommSplit, (void*, int, int, void**, void*)) \
  X(ncclCommFinalize, (void*)) \
  X(ncclCommDestroy, (void*)) \
  X(ncclCommAbort, (void*)) \
  X(ncclCommCount, (void*, int*)) \
  X(ncclCommCuDevice, (void*, int*)) \
  X(ncclCommUserRank, (void*, int*)) \
  X(ncclCommGetAsyncError, (void*, int*)) \
  X(ncclAllReduce, (const void*, void*, size_t, int, int, void*, void*)) \
  X(ncclAllGather, (const void*, void*, size_t, int, void*, void*)) \
  X(ncclReduceScatter, (const void*, void*, size_t, int, int, void*, void*)) \
  X(ncclBroadcast, (const void*, void*, size_t, int, int, void*, void*)) \
  X(ncclSend, (const void*, size_t, int, int, void*, void*)) \
  X(ncclRecv, (void*, size_t, int, int, void*, void*)) \
  X(ncclGroupStart, ()) \
  X(ncclGroupEnd, ()) \
  X(ncclMemAlloc, (void**, size_t))
// clang-format on

struct Api {
#define X(name, parameters) int(*name) parameters;
  SIM_NCCL_FUNCTIONS(X)
#undef X
  const char* (*ncclGetErrorString)(int);
  const char* (*ncclGetLastError)(void*);
};

class RanksTest : public DriverTest {
 protected:
  RanksTest();

  // Communicators of `size` ranks; streams_ has a stream for each.
  std::vector<void*> ranks(int size);
  int all_reduce(void* communicator, void* stream, size_t floats = 1000) {
    return nccl.ncclAllReduce(nullptr, nullptr, floats, kFloat, kSum, communicator,
                              stream);
  }
  int error(void* communicator) const;

  // What this test has begun, in the order of the launches.
  std::vector<TruthRecord> exchanges() const;
  std::string text(uint32_t name) const;

  // Of one exchange that moves so many bytes.
  static int64_t takes(double bytes) {
    return 10 * kMicrosecond + int64_t(bytes / 100);
  }

  const Api& nccl;
  std::vector<void*> streams_;

 private:
  uint64_t before_ = 0;  // the newest correlation id when the test began
};

}  // namespace lull::sim::nccl
