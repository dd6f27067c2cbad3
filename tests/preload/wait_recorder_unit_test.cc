#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "daemon/base/event_views.h"
#include "preload/hooks/wait_recorder.h"
#include "tests/preload/support/test_segment.h"

namespace lull {
namespace {

constexpr abi::HookId kPoll = abi::HookId::k_poll;
constexpr abi::HookId kRead = abi::HookId::k_read;

int nothing(int value) { return value; }
int fails(int) {
  errno = EAGAIN;
  return -1;
}
int lasts_a_millisecond(int value) {
  usleep(1000);
  return value;
}

template <abi::HookId hook>
__attribute__((noinline)) int call(int (*original)(int), int value) {
  return measure_wait<hook>(__builtin_frame_address(0), __builtin_return_address(0),
                            original, value);
}

class WaitRecorder : public testing::Test {
 protected:
  WaitRecorder() {
    t_thread = {};
    take_ring(segment_.base());
    segment_.view().ring(0).tail = 1;  // past kThreadStart
  }
  std::vector<abi::Event> events() const { return segment_.unread(0); }

  TestSegment segment_;
};

TEST_F(WaitRecorder, WritesALongWaitWithItsResult) {
  uint64_t before = monotonic_ns();
  EXPECT_EQ(call<kRead>(lasts_a_millisecond, 7), 7);
  ASSERT_EQ(events().size(), 1u);
  abi::Event event = events()[0];
  EXPECT_EQ(event.type, abi::EventType::kHostWait);
  EXPECT_EQ(event.api, static_cast<uint16_t>(kRead));
  EXPECT_GE(event.start_ns, before);
  EXPECT_GE(event.duration_ns, 1'000'000u);
  EXPECT_EQ(HostWaitView{event}.descriptor(), 7u) << "read's first argument";
  EXPECT_EQ(HostWaitView{event}.result(), 7);
  EXPECT_EQ(event.flags & (abi::kFlagFailed | abi::kFlagFromPython), 0);
}

TEST_F(WaitRecorder, OnlySumsShortWaits) {
  segment_.view().control().wait_threshold_ns = 1'000'000'000;
  for (int i = 0; i < 5; ++i) call<kPoll>(lasts_a_millisecond, 1);
  EXPECT_TRUE(events().empty());
  EXPECT_EQ(segment_.view().ring(0).short_waits, 5u);
  EXPECT_GE(segment_.view().ring(0).short_waits_ns, 5'000'000u);
}

TEST_F(WaitRecorder, KeepsErrnoAsTheOriginalLeftIt) {
  segment_.view().control().wait_threshold_ns = 0;
  errno = 0;
  EXPECT_EQ(call<kPoll>(fails, 3), -1);
  EXPECT_EQ(errno, EAGAIN);
  ASSERT_EQ(events().size(), 1u);
  EXPECT_NE(events()[0].flags & abi::kFlagFailed, 0);
  abi::Event event = events()[0];
  EXPECT_EQ(HostWaitView{event}.descriptor(), 0u) << "poll has none of its own";
  EXPECT_EQ(HostWaitView{event}.result(), -1);
  errno = 4242;
  EXPECT_EQ(call<kPoll>(nothing, 3), 3);
  EXPECT_EQ(errno, 4242);
}

TEST_F(WaitRecorder, LeavesAWaitBelowAnotherHookToThatOne) {
  segment_.view().control().wait_threshold_ns = 0;
  Guard cuda_call(__builtin_frame_address(0), Layer::kRuntime);
  EXPECT_EQ(call<kRead>(nothing, 9), 9);
  EXPECT_TRUE(events().empty());
}

// libc calls nothing that is hooked, so this is one of a signal handler.
TEST_F(WaitRecorder, RecordsAWaitInsideOfAnotherBesideIt) {
  segment_.view().control().wait_threshold_ns = 0;
  EXPECT_EQ(call<kPoll>([](int value) { return call<kRead>(nothing, value); }, 9), 9);
  ASSERT_EQ(events().size(), 2u);
  EXPECT_EQ(events()[0].api, static_cast<uint16_t>(kRead));
  EXPECT_EQ(events()[1].api, static_cast<uint16_t>(kPoll));
}

TEST_F(WaitRecorder, RecordsTheNextWaitAfterAJumpOrAnExceptionLeftOne) {
  segment_.view().control().wait_threshold_ns = 0;
  static jmp_buf back;
  if (setjmp(back) == 0) {
    call<kPoll>([](int) -> int { longjmp(back, 1); }, 1);
  }
  call<kPoll>(nothing, 1);
  EXPECT_EQ(events().size(), 1u);
  EXPECT_THROW(call<kPoll>([](int) -> int { throw std::runtime_error("x"); }, 1),
               std::runtime_error);
  call<kPoll>(nothing, 1);
  EXPECT_EQ(events().size(), 2u);
}

TEST_F(WaitRecorder, LetsACancellationThrough) {
  std::atomic<bool> cleaned{false};
  std::atomic<bool> waiting{false};
  static std::atomic<bool>* entered;
  entered = &waiting;
  std::thread thread([&] {
    struct Cleaner {
      std::atomic<bool>* flag;
      ~Cleaner() { *flag = true; }
    } cleaner{&cleaned};
    take_ring(segment_.base());
    call<kPoll>(
        [](int) {
          *entered = true;
          for (;;) sleep(10);
          return 0;
        },
        1);
  });
  while (!waiting) std::this_thread::yield();
  pthread_cancel(thread.native_handle());
  thread.join();
  EXPECT_TRUE(cleaned);
}

TEST_F(WaitRecorder, TakesARingForAThreadThatHasNone) {
  segment_.view().control().wait_threshold_ns = 0;
  std::thread([] {
    t_thread.watched = 1;
    call<kPoll>(nothing, 1);
  }).join();
  EXPECT_EQ(segment_.view().ring(1).head, 2u);
}

TEST_F(WaitRecorder, WatchesOnlyThreadsThatAreWorthIt) {
  EXPECT_FALSE(wait_is_watched());  // judged: no Python in this program
  EXPECT_EQ(t_thread.judged, t_thread.generation);
  t_thread.watched = 1;
  EXPECT_TRUE(wait_is_watched());
  segment_.view().control().armed = 0;
  EXPECT_FALSE(wait_is_watched());
}

TEST_F(WaitRecorder, AccountsForItsOwnCost) {
  segment_.view().control().wait_threshold_ns = 1'000'000'000;
  for (uint32_t i = 0; i < 10 * kSelfSamplePeriod; ++i) call<kPoll>(nothing, 1);
  EXPECT_EQ(segment_.view().ring(0).self_samples, 10u);
  // A sample is at least the 40 ns of the two clock reads, and stands for 64.
  EXPECT_GE(segment_.view().ring(0).self_ns, 10u * kSelfSamplePeriod * 40);
}

TEST_F(WaitRecorder, TimesEachEventThatTookAStack) {
  segment_.view().control().wait_threshold_ns = 0;
  for (int i = 0; i < 3; ++i) call<kPoll>(nothing, 1);
  EXPECT_EQ(segment_.view().ring(0).self_samples, 3u);
  EXPECT_GE(segment_.view().ring(0).self_ns, 3u * kTwoClockReadsNs);
}

}  // namespace
}  // namespace lull
