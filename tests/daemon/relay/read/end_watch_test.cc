#include "daemon/relay/read/end_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lull::relay {
namespace {

struct Child {
  Child() : pid(fork()) {
    if (pid == 0) {
      while (true) pause();
    }
    pidfd = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  }
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  void End() const {
    kill(pid, SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  }

  pid_t pid;
  UniqueFd pidfd;
};

TEST(EndWatch, TellsAnEndUntilTheProcessIsTakenOut) {
  EndWatch watch;
  EXPECT_FALSE(watch.Any());
  Child first, second;
  ASSERT_TRUE(first.pidfd && second.pidfd);
  watch.Add(first.pidfd.get());
  watch.Add(second.pidfd.get());
  EXPECT_FALSE(watch.Any());
  first.End();
  EXPECT_TRUE(watch.Any());
  EXPECT_TRUE(watch.Any()) << "whoever could not act yet asks again";
  UniqueFd keepers(dup(first.pidfd.get()));  // holds it as the keeper does
  watch.Remove(first.pidfd.get());
  first.pidfd.reset();
  EXPECT_FALSE(watch.Any());
  second.End();
  EXPECT_TRUE(watch.Any());
}

TEST(EndWatch, SaysThatThereMayBeOneWhereTheKernelWouldNotTell) {
  EndWatch watch;
  watch.Add(-1);  // nobody has a descriptor of it, and nobody asks
  EXPECT_FALSE(watch.Any());
  UniqueFd none(dup(0));
  const int closed = none.get();
  none.reset();
  watch.Add(closed);
  EXPECT_TRUE(watch.Any());
}

}  // namespace
}  // namespace lull::relay
