// What the relay has read as warm-up is never of active time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "daemon/base/gpu_event_views.h"
#include "preload/cupti/tracer.h"
#include "tests/preload/cupti/fake_cupti.h"
#include "tests/preload/cupti/records.h"
#include "tests/preload/support/test_segment.h"

namespace lull::cupti {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// A program that has launched before, and is traced all the time from now on.
class TracerTest : public testing::Test {
 protected:
  TracerTest() : before_(g_tracer) {
    g_tracer = tracer_.get();
    // Read at once, unlike the offset of CLOCK_REALTIME.
    fake().rate = 1;
    fake().offset = 1'700'000'000'000'000'000;
    segment_.view().control().gpu_mode =
        static_cast<uint32_t>(abi::GpuMode::kContinuous);
    // A launch, so that what the device works on may be from before.
    abi::Event launch = {};
    launch.type = abi::EventType::kLaunch;
    deliver(segment_.base(), launch);
    segment_.view().ring(0).gpu_calls = 1;
    t_thread.last_launch_ns = 1;  // this is one of the program's threads
    tracer_->prepare(segment_.base());
    while (fake().enabled.empty()) {
      tracer_->poll(segment_.base());
      usleep(1'000);
    }
    begun_ns_ = monotonic_ns();
  }
  ~TracerTest() override {
    g_tracer = before_;
    t_thread = {};
  }

  FakeCupti& fake() { return FakeCupti::instance(); }
  abi::RingHeader& ring() { return segment_.view().ring(0); }
  void relay_reads() {
    for (const abi::Event& event : segment_.unread(0)) {
      if (event.type == abi::EventType::kGpuKernel) last_read_ns_ = event.start_ns;
    }
    ring().tail.store(ring().head.load());
  }
  // Leaves room for so many events before a thread of the program stops.
  void fill_ring(uint64_t room) {
    abi::Event other = {};
    other.type = abi::EventType::kScope;
    while (ring().head.load() - ring().tail.load() + abi::kRingEvents / 2 + room <
           abi::kRingEvents) {
      ASSERT_TRUE(deliver(segment_.base(), other));
    }
  }
  // A launch, and its kernel that takes a microsecond; at a millisecond of the window.
  void run_kernel(uint32_t id, uint64_t at_ms) {
    uint64_t at = begun_ns_ + at_ms * kMillisecond;
    fake().write(call_record(Kind::kRuntime, kCudaLaunchKernel, fake().at(at),
                             fake().at(at + 1'000), id));
    fake().write(kernel_record(fake().at(at + 2'000), fake().at(at + 3'000), id));
  }
  void until(uint64_t at_ms) {
    while (monotonic_ns() < begun_ns_ + at_ms * kMillisecond) usleep(1'000);
  }
  uint64_t kernels(uint64_t since_ns) const {
    uint64_t count = 0;
    for (const abi::Event& event : segment_.unread(0)) {
      count += event.type == abi::EventType::kGpuKernel && event.start_ns >= since_ns;
    }
    return count;
  }
  // When active time began, as it was told; 0: it has not.
  uint64_t active_since() const {
    for (const abi::Event& event : segment_.unread(0)) {
      if (event.type == abi::EventType::kGpuTracing &&
          event.arg0 == static_cast<uint64_t>(abi::TracingState::kActive)) {
        return event.start_ns;
      }
    }
    return 0;
  }

  FakeCuptiScope scope_;
  TestSegment segment_;
  std::unique_ptr<Tracer> tracer_ = std::make_unique<Tracer>(FakeCupti::load);
  Tracer* before_;
  uint64_t begun_ns_ = 0;
  uint64_t last_read_ns_ = 0;  // when a kernel began
};

TEST_F(TracerTest, ActiveTimeBeginsWithTheRoundWhereNothingWasPassedOn) {
  for (uint32_t i = 1; i <= 40; ++i) run_kernel(i, i);
  until(130);
  tracer_->poll(segment_.base());
  ASSERT_NE(active_since(), 0u);
  EXPECT_LT(active_since(), begun_ns_ + 5 * kMillisecond);
  EXPECT_GE(kernels(active_since()), 39u);
}

TEST_F(TracerTest, WhatThePartOfABufferHadThatWasReadIsWarmUp) {
  for (uint32_t i = 1; i <= 40; ++i) run_kernel(i, i);
  until(50);
  fill_ring(10);
  fake().complete();  // CUPTI returns it by itself, on this thread
  const uint64_t returned_ns = monotonic_ns();
  const uint64_t read = kernels(0);
  ASSERT_GT(read, 0u);
  ASSERT_LT(read, 40u);
  until(130);
  // The relay comes by just while lull asks for what has ended.
  fake().before_flush = [this] { relay_reads(); };
  tracer_->poll(segment_.base());
  ASSERT_NE(last_read_ns_, 0u);
  ASSERT_NE(active_since(), 0u);
  EXPECT_GT(active_since(), last_read_ns_);
  // What has ended by the time at which the buffer was returned is not of it, and no
  // more.
  EXPECT_LE(active_since(), returned_ns);
}

TEST_F(TracerTest, WhatWasReadWhileLullAskedIsWarmUp) {
  for (uint32_t i = 1; i <= 40; ++i) run_kernel(i, i);
  until(130);
  fake().after_flush = [this] { relay_reads(); };
  tracer_->poll(segment_.base());
  ASSERT_NE(last_read_ns_, 0u);
  ASSERT_NE(active_since(), 0u);
  EXPECT_GT(active_since(), last_read_ns_);
}

}  // namespace
}  // namespace lull::cupti
