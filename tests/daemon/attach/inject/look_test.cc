// A thread is stopped, looked at and let go: what it waits for must not show it.
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "daemon/attach/inject/attempt.h"
#include "daemon/attach/inject/proc.h"
#include "tests/daemon/attach/inject/victim_process.h"

namespace lull::inject {
namespace {

constexpr int kLooks = 10;

class Look : public testing::TestWithParam<const char*> {
 protected:
  // Of the main thread; with all code declared dangerous a look finds fault with it.
  Attempt LookAt(const VictimProcess& victim) {
    auto landscape = Survey(victim.pid(), ThisArch(), &images_);
    EXPECT_TRUE(landscape.ok()) << landscape.status();
    landscape->dangers = {{0, UINT64_MAX, landscape->libc}};
    landscape->no_start = landscape->dangers;
    Request request = ProbeRequest(victim.pid());
    return MakeAttempt(request, ThisArch(), *landscape,
                       *ElfImage::Open(request.identity), stack_, victim.pid(),
                       /*loaded=*/false);
  }

  ImageCache images_;
  std::vector<uint64_t> stack_ = std::vector<uint64_t>(kStackLooked / 8);
};

// Fewer when it is late to begin its wait.
TEST_P(Look, IsNotSeenByAWait) {
  VictimProcess victim(GetParam(), 1);
#ifdef __aarch64__
  // A call that is entered in the moment of the stop and ends with EINTR cannot be
  // begun again there (docs/aarch64.md).
  for (int i = 0; i < 500 && !SleepingIn(victim.pid(), victim.pid()); ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
#endif
  for (int i = 0; i < kLooks; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
    Attempt attempt = LookAt(victim);
    ASSERT_EQ(attempt.end, Attempt::kUnsafe) << attempt.status;
  }
  EXPECT_EQ(victim.page().rounds, 0) << "errno " << victim.page().detail;
  EXPECT_EQ(victim.End(), 0) << "errno " << victim.page().detail;
}

INSTANTIATE_TEST_SUITE_P(
    Waits, Look,
    testing::Values("read", "read_socket", "read_inotify", "read_eventfd", "readv",
                    "readv_socket", "recv", "recvmsg", "recvmmsg", "send", "accept",
                    "connect", "endless_poll", "poll_an_hour", "ppoll_read_only_time",
                    "select_an_hour", "pselect", "endless_epoll", "epoll_pwait",
                    "epoll_pwait2", "futex_wait", "futex_wait_an_hour",
                    "futex_wait_bits", "nanosleep_an_hour", "sleep_until", "pause",
                    "sigsuspend", "sigwait", "sigwaitinfo", "sigtimedwait_an_hour",
                    "wait4", "waitid", "flock", "record_lock", "open_fifo", "semop",
                    "semtimedop", "msgrcv", "io_getevents"),
    [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lull::inject
