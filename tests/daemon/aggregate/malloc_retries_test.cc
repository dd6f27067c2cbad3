#include "daemon/aggregate/malloc_retries.h"

#include <gtest/gtest.h>

namespace lull::aggregate {
namespace {

constexpr uint8_t kOk = 0;

class MallocRetry : public ::testing::Test {
 protected:
  std::optional<MallocRetries::Retry> Device(uint8_t variant, uint64_t bytes,
                                             uint32_t tid = 1) {
    return Add(EventType::kDeviceMemory, variant, bytes, tid);
  }
  std::optional<MallocRetries::Retry> Free(uint32_t tid = 1) {
    return Device(kVariantFree, 0, tid);
  }
  void Tensor(uint8_t variant, uint32_t tid = 1) {
    EXPECT_FALSE(Add(EventType::kTorchMemory, variant, 64, tid));
  }

  std::optional<MallocRetries::Retry> Add(EventType type, uint8_t variant,
                                          uint64_t bytes, uint32_t tid) {
    Series series;
    series.type = type;
    series.variant = variant;
    Event event;
    event.series = ++events_;
    event.start_ns = 1000 * events_;
    event.duration_ns = 10;
    MemoryView{event}
        .set_address((variant & kVariantFailed) != 0 ? 0 : 4096)
        .set_bytes(bytes);
    event.tid = tid;
    return retries_.Add(series, event);
  }

  MallocRetries retries_;
  uint32_t events_ = 0;
};

TEST_F(MallocRetry, IsAFailureThenFreesThenTheSameCallAgain) {
  EXPECT_FALSE(Device(kVariantFailed, 100));
  EXPECT_FALSE(Free());
  EXPECT_FALSE(Free());
  auto retry = Device(kOk, 100);
  ASSERT_TRUE(retry);
  EXPECT_EQ(retry->series, 1u);
  EXPECT_EQ(retry->start_ns, 1000u);
  EXPECT_EQ(retry->duration_ns, 4010u - 1000u);
  EXPECT_EQ(retry->bytes, 100u);
  EXPECT_TRUE(retry->succeeded);
  EXPECT_FALSE(Device(kOk, 100)) << "it was one retry";
}

TEST_F(MallocRetry, ThatFailsTooMayBeFollowedByAnother) {
  Device(kVariantFailed, 100);
  Free();
  auto first = Device(kVariantFailed, 100);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->succeeded);
  Free();
  auto second = Device(kOk, 100);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->succeeded);
}

TEST_F(MallocRetry, IsNotAFailureThatIsGivenUp) {
  Device(kVariantFailed, 100);
  Free();
  EXPECT_FALSE(Device(kOk, 50)) << "another size";
  EXPECT_FALSE(Device(kOk, 100));
}

TEST_F(MallocRetry, NeedsAFreeThatFreedSomething) {
  Device(kVariantFailed, 100);
  EXPECT_FALSE(Device(kOk, 100));
  Device(kVariantFailed, 100);
  Device(kVariantFree | kVariantFailed, 0);
  EXPECT_FALSE(Device(kOk, 100));
}

TEST_F(MallocRetry, LiesWithinOneAllocationOfATensor) {
  Device(kVariantFailed, 100);
  Tensor(kVariantFree);  // does not end it
  Free();
  EXPECT_TRUE(Device(kOk, 100));
  Device(kVariantFailed, 100);
  Free();
  Tensor(kOk);
  EXPECT_FALSE(Device(kOk, 100));
}

TEST_F(MallocRetry, IsTheBusinessOfOneThread) {
  Device(kVariantFailed, 100, 1);
  Free(1);
  EXPECT_FALSE(Device(kOk, 100, 2));
  Device(kVariantFailed, 100, 3);
  Free(4);
  EXPECT_FALSE(Device(kOk, 100, 3));
}

TEST_F(MallocRetry, IsOfDeviceMemoryAlone) {
  const auto pinned = static_cast<uint8_t>(Allocator::kPinned);
  Device(static_cast<uint8_t>(pinned | kVariantFailed), 100);
  Free();
  EXPECT_FALSE(Device(pinned, 100));
}

}  // namespace
}  // namespace lull::aggregate
