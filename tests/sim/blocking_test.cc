// Which calls block the host, and for how long. In each case a kernel of 20 ms is
// at work: a call that waits for the device cannot pass for one that does not.
#include <algorithm>
#include <vector>

#include "tests/sim/driver_fixture.h"
#include "tests/sim/engine/clock.h"

namespace lull::sim {
namespace {

constexpr int64_t kBusy = 20 * kMillisecond;
constexpr int64_t kWaited = 10 * kMillisecond;  // at least, if it waited at all

class Blocking : public DriverTest {
 protected:
  void occupy() { ASSERT_EQ(launch(busy_, kBusy), 0); }

  void* busy_ = stream();
  uint64_t device_ = device_memory(1 << 20);
  void* pinned_ = pinned_memory(1 << 20);
  std::vector<char> pageable_ = std::vector<char>(1 << 20);
};

TEST_F(Blocking, EverySynchronizeWaits) {
  void* e = event();
  occupy();
  EXPECT_GT(blocked([&] { return cu.cuStreamSynchronize.legacy(busy_); }), kWaited);
  occupy();
  EXPECT_GT(blocked([&] { return cu.cuCtxSynchronize(); }), kWaited);
  occupy();
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(e, busy_, 0), 0);
  EXPECT_GT(blocked([&] { return cu.cuEventSynchronize(e); }), kWaited);
  EXPECT_EQ(blocked([&] { return cu.cuCtxSynchronize(); }), 0);
}

TEST_F(Blocking, SynchronizingTheNullStreamWaitsForBlockingStreamsOnly) {
  occupy();
  EXPECT_GT(blocked([&] { return cu.cuStreamSynchronize.legacy(nullptr); }), kWaited);
  ASSERT_EQ(launch(stream(false), kBusy), 0);
  EXPECT_EQ(blocked([&] { return cu.cuStreamSynchronize.legacy(nullptr); }), 0);
}

TEST_F(Blocking, QueriesNeverWait) {
  void* e = event();
  occupy();
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(e, busy_, 0), 0);
  EXPECT_EQ(cu.cuStreamQuery.legacy(busy_), 600);
  EXPECT_EQ(cu.cuEventQuery(e), 600);
}

TEST_F(Blocking, CopiesToTheHostWaitUnlessAsynchronousAndPinned) {
  occupy();
  EXPECT_GT(
      blocked([&] { return cu.cuMemcpyDtoH_v2.legacy(pageable_.data(), device_, 64); }),
      kWaited);
  occupy();
  EXPECT_GT(blocked([&] { return cu.cuMemcpyDtoH_v2.legacy(pinned_, device_, 64); }),
            kWaited);
  occupy();
  EXPECT_GT(blocked([&] {
              return cu.cuMemcpyDtoHAsync_v2.legacy(pageable_.data(), device_, 64,
                                                    busy_);
            }),
            kWaited);
  occupy();
  EXPECT_EQ(blocked([&] {
              return cu.cuMemcpyDtoHAsync_v2.legacy(pinned_, device_, 64, busy_);
            }),
            0);
}

TEST_F(Blocking, CopiesToTheDeviceWaitUnlessTheyAreStagedOrPinned) {
  size_t large = 128 << 10, small = 64 << 10;
  occupy();
  EXPECT_GT(blocked([&] {
              return cu.cuMemcpyHtoD_v2.legacy(device_, pageable_.data(), small);
            }),
            kWaited);
  occupy();
  EXPECT_GT(blocked([&] { return cu.cuMemcpyHtoD_v2.legacy(device_, pinned_, small); }),
            kWaited);
  occupy();
  EXPECT_GT(blocked([&] {
              return cu.cuMemcpyHtoDAsync_v2.legacy(device_, pageable_.data(), large,
                                                    busy_);
            }),
            kWaited);
  occupy();
  EXPECT_EQ(blocked([&] {
              return cu.cuMemcpyHtoDAsync_v2.legacy(device_, pageable_.data(), small,
                                                    busy_);
            }),
            0);
  EXPECT_EQ(blocked([&] {
              return cu.cuMemcpyHtoDAsync_v2.legacy(device_, pinned_, large, busy_);
            }),
            0);
}

TEST_F(Blocking, CopiesOnTheDeviceNeverWait) {
  occupy();
  EXPECT_EQ(
      blocked([&] { return cu.cuMemcpyDtoD_v2.legacy(device_ + 4096, device_, 64); }),
      0);
  EXPECT_EQ(blocked([&] {
              return cu.cuMemcpyDtoDAsync_v2.legacy(device_ + 4096, device_, 64, busy_);
            }),
            0);
}

TEST_F(Blocking, AMemsetWaitsOnlyIfItsTargetIsPinned) {
  auto pinned = reinterpret_cast<uint64_t>(pinned_);
  occupy();
  EXPECT_EQ(blocked([&] { return cu.cuMemsetD8_v2.legacy(device_, 1, 64); }), 0);
  EXPECT_EQ(blocked([&] { return cu.cuMemsetD8Async.legacy(pinned, 1, 64, busy_); }),
            0);
  EXPECT_GT(blocked([&] { return cu.cuMemsetD8_v2.legacy(pinned, 1, 64); }), kWaited);
}

TEST_F(Blocking, FreeWaitsForTheDeviceAndStreamOrderedFreeDoesNot) {
  uint64_t plain = device_memory(4096), pooled = 0;
  ASSERT_EQ(cu.cuMemAllocAsync.legacy(&pooled, 4096, busy_), 0);
  // Not even on a stream that ignores the NULL stream.
  ASSERT_EQ(launch(stream(false), kBusy), 0);
  EXPECT_EQ(blocked([&] { return cu.cuMemFreeAsync.legacy(pooled, busy_); }), 0);
  EXPECT_GT(blocked([&] { return cu.cuMemFree_v2(plain); }), kWaited);
}

TEST_F(Blocking, AllocatingTakesTimeButDoesNotWait) {
  configure("malloc_us", "3000", "50");
  occupy();
  int64_t begin = now_ns();
  EXPECT_EQ(blocked([&] { return device_memory(4096) == 0; }), 0);
  EXPECT_GE(now_ns() - begin, 3 * kMillisecond);
}

TEST_F(Blocking, ALaunchWaitsOnceTheQueueIsFull) {
  configure("queue_depth", "8", "1024");
  void* s = stream();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(blocked([&] { return launch(s, 5 * kMillisecond); }), 0) << i;
  }
  EXPECT_GT(blocked([&] { return launch(s, kMillisecond); }), kMillisecond);
}

// The precision that the reports are tested against. A busy machine delays a
// wake-up now and then, never an early return: the best of some tries is the
// precision of the method.
TEST_F(Blocking, AWaitEndsWithItsOperationToTenMicroseconds) {
  int64_t best = kMillisecond;
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(launch(busy_, 2 * kMillisecond), 0);
    ASSERT_EQ(cu.cuStreamSynchronize.legacy(busy_), 0);
    int64_t returned = now_ns();
    int64_t late = returned - kernels().back().end_ns;
    ASSERT_GE(late, 0) << "returned before the kernel ended";
    best = std::min(best, late);
  }
  EXPECT_LT(best, 10 * kMicrosecond);
}

}  // namespace
}  // namespace lull::sim
