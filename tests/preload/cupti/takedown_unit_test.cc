// When CUPTI is taken down after a window, and that nothing is lost by it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "daemon/base/gpu_event_views.h"
#include "preload/cupti/takedown.h"
#include "preload/cupti/tracer.h"
#include "tests/preload/cupti/fake_cupti.h"
#include "tests/preload/cupti/records.h"
#include "tests/preload/support/test_segment.h"

namespace lull::cupti {
namespace {

// A program with one device that waits for all of it now and then. Its relay wants
// CUPTI to be taken down after each window.
class TakedownTest : public testing::Test {
 protected:
  TakedownTest() : before_(g_tracer) {
    g_tracer = tracer_.get();
    // CLOCK_REALTIME, read at once: windows are short, and so are stretches between
    // samples of the clock.
    const auto offset = static_cast<int64_t>(fake().at(0));
    fake().rate = 1;
    fake().offset = offset;
    control().gpu_finalize = 1;
    segment_.view().ring(0).gpu_calls = 0;
    t_thread.last_launch_ns = 1;  // this is one of the program's threads
    set_mode(abi::GpuMode::kHost);
    tracer_->prepare(segment_.base());
  }
  ~TakedownTest() override {
    g_tracer = before_;
    t_thread = {};
  }

  FakeCupti& fake() { return FakeCupti::instance(); }
  abi::ControlBlock& control() { return segment_.view().control(); }
  void set_mode(abi::GpuMode mode) { control().gpu_mode = static_cast<uint32_t>(mode); }
  void poll() { tracer_->poll(segment_.base()); }
  void wait_for_all() { tracer_->synchronized(segment_.base(), true, monotonic_ns()); }

  void begin_window() {
    set_mode(abi::GpuMode::kContinuous);
    for (int i = 0; i < 2000 && fake().enabled.empty(); ++i) {
      poll();
      usleep(1'000);
    }
    ASSERT_FALSE(fake().enabled.empty());
  }
  // All of it is collected.
  void end_window() {
    set_mode(abi::GpuMode::kHost);
    poll();
    wait_for_all();
    poll();
    ASSERT_TRUE(fake().enabled.empty());
  }
  void window() {
    begin_window();
    run_kernel(++id_);
    end_window();
  }
  // A launch, and its kernel that takes a microsecond; just now.
  void run_kernel(uint32_t id) {
    uint64_t at = monotonic_ns();
    fake().write(call_record(Kind::kRuntime, kCudaLaunchKernel, fake().at(at),
                             fake().at(at + 1'000), id));
    fake().write(kernel_record(fake().at(at + 2'000), fake().at(at + 3'000), id));
  }

  ptrdiff_t times(const std::string& call) {
    return std::ranges::count(fake().calls, call);
  }
  bool is_down() { return !fake().calls.empty() && fake().calls.back() == "finalize"; }
  uint64_t told(abi::EventType type) const {
    uint64_t count = 0;
    for (const abi::Event& event : segment_.unread(0)) count += event.type == type;
    return count;
  }
  // Since when CUPTI has told all, as far as is known.
  uint64_t mark() const {
    uint64_t latest = 0;
    for (const abi::Event& event : segment_.unread(0)) {
      if (event.type == abi::EventType::kGpuMark) latest = event.start_ns;
    }
    return latest;
  }

  FakeCuptiScope scope_;
  TestSegment segment_;
  std::unique_ptr<Tracer> tracer_ = std::make_unique<Tracer>(FakeCupti::load);
  Tracer* before_;
  uint32_t id_ = 100;
};

TEST_F(TakedownTest, IsDoneAfterEachWindowOnceTheProgramHasWaitedForAll) {
  for (int i = 1; i <= 3; ++i) {
    window();
    EXPECT_EQ(times("finalize"), i - 1);
    wait_for_all();
    EXPECT_EQ(times("finalize"), i);
    wait_for_all();
    EXPECT_EQ(times("finalize"), i) << "it is down";
  }
  EXPECT_EQ(times("register"), 3);
  EXPECT_EQ(told(abi::EventType::kGpuKernel), 3u);
  EXPECT_EQ(told(abi::EventType::kGpuLost), 0u);
}

TEST_F(TakedownTest, IsNotDoneWhereSomethingElseMayRun) {
  window();
  tracer_->synchronized(segment_.base(), false, monotonic_ns());
  EXPECT_FALSE(is_down());
}

TEST_F(TakedownTest, IsNotDoneWhereItIsNotAskedFor) {
  control().gpu_finalize = 0;
  window();
  wait_for_all();
  EXPECT_FALSE(is_down());
}

TEST_F(TakedownTest, AnotherUserThatWasSeenKeepsCuptiUp) {
  tracer_->before_other(Tracer::OtherCall::kEnable, Kind::kConcurrentKernel);
  tracer_->before_other(Tracer::OtherCall::kDisable, Kind::kConcurrentKernel);
  tracer_->after_flush(kFlushForced);
  usleep(150'000);  // it is gone
  window();
  wait_for_all();
  EXPECT_EQ(times("finalize"), 0);
}

TEST_F(TakedownTest, ASubscriberKeepsCuptiUp) {
  tracer_->before_other(Tracer::OtherCall::kSubscribe);
  window();
  EXPECT_EQ(told(abi::EventType::kGpuKernel), 1u) << "and is not in the way of tracing";
  wait_for_all();
  EXPECT_EQ(times("finalize"), 0);
}

TEST_F(TakedownTest, ASubscriberThatWasNotSeenKeepsCuptiUp) {
  fake().failures["cuptiSubscribe"] = 39;
  window();
  wait_for_all();
  EXPECT_EQ(times("subscribe"), 1);
  EXPECT_EQ(times("finalize"), 0);
}

TEST_F(TakedownTest, AnotherUserThatComesWhenItIsDueKeepsCuptiUp) {
  window();
  // As where it had no patience to wait for a thread of ours.
  tracer_->delegate([](BufferRequested, BufferCompleted) { return kSuccess; }, nullptr,
                    nullptr);
  wait_for_all();
  EXPECT_EQ(times("finalize"), 0);
}

TEST_F(TakedownTest, ASubscriberWaitsUntilItIsDone) {
  window();
  std::atomic<bool> subscribed{false};
  std::thread other;
  fake().while_finalized = [&] {
    other = std::thread([&] {
      tracer_->before_other(Tracer::OtherCall::kSubscribe);
      subscribed = true;
    });
    usleep(50'000);
    EXPECT_FALSE(subscribed);
  };
  wait_for_all();
  other.join();
  EXPECT_TRUE(is_down());
}

TEST_F(TakedownTest, WhatCuptiStillHadIsToldFirst) {
  window();
  // Its launch was not known to be one.
  fake().before_flush = [this] { run_kernel(++id_); };
  wait_for_all();
  EXPECT_TRUE(is_down());
  EXPECT_EQ(told(abi::EventType::kGpuKernel), 2u);
}

TEST_F(TakedownTest, WhatNeverComesBackHoldsNothingUp) {
  window();
  uint8_t* buffer = nullptr;
  size_t size = 0, most = 0;
  // A call that was under way makes a record.
  fake().while_finalized = [&] { fake().requested(&buffer, &size, &most); };
  wait_for_all();
  ASSERT_TRUE(is_down());
  fake().while_finalized = nullptr;
  EXPECT_EQ(told(abi::EventType::kGpuLost), 1u) << "nobody knows how much";
  const uint64_t next_ns = monotonic_ns();
  window();
  EXPECT_GT(mark(), next_ns);
  wait_for_all();
  EXPECT_TRUE(is_down());
}

TEST_F(TakedownTest, IsNotDoneWhileCuptiHasTheScratchBuffer) {
  begin_window();
  uint8_t* buffers[kBuffers + 1];
  size_t size = 0, most = 0;
  for (uint8_t*& buffer : buffers) fake().requested(&buffer, &size, &most);
  for (uint32_t i = 0; i < kBuffers; ++i) {
    fake().completed(nullptr, 0, buffers[i], kBufferBytes, 0);
  }
  end_window();
  wait_for_all();
  EXPECT_FALSE(is_down());
  fake().completed(nullptr, 0, buffers[kBuffers], kScratchBytes, 0);
  poll();
  wait_for_all();
  EXPECT_TRUE(is_down());
}

// Active time begins once the device has come to what was launched in the window.
TEST_F(TakedownTest, IdsOfCallsMayBeginAnewAfterIt) {
  auto active = [this] {
    uint64_t count = 0;
    for (const abi::Event& event : segment_.unread(0)) {
      count += event.type == abi::EventType::kGpuTracing &&
               event.arg0 == static_cast<uint64_t>(abi::TracingState::kActive);
    }
    return count;
  };
  window();
  wait_for_all();
  ASSERT_TRUE(is_down());
  const uint64_t before = active();
  segment_.view().ring(0).gpu_calls = 1;  // there was work before
  begin_window();
  for (uint32_t id = 1; id <= 10; ++id) run_kernel(id);
  usleep(130'000);
  poll();
  EXPECT_EQ(active(), before + 1);
}

TEST_F(TakedownTest, AnErrorIsToldAndTracingGoesOn) {
  fake().failures["cuptiFinalize"] = 7;
  window();
  wait_for_all();
  EXPECT_EQ(segment_.view().header().cupti_result, 7u);
  window();
  EXPECT_EQ(told(abi::EventType::kGpuKernel), 2u);
}

// What another thread launched meanwhile may be running.
TEST_F(TakedownTest, AWaitThatBeganInTheWindowSaysNothingOfWhatWasLaunchedLast) {
  begin_window();
  const uint64_t since_ns = monotonic_ns();
  run_kernel(++id_);
  set_mode(abi::GpuMode::kHost);
  poll();
  tracer_->synchronized(segment_.base(), true, since_ns);
  EXPECT_EQ(times("flush 1"), 0);
  wait_for_all();
  EXPECT_EQ(times("flush 1"), 1);
}

}  // namespace
}  // namespace lull::cupti
