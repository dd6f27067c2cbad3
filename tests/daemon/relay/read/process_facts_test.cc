#include "daemon/relay/read/process_facts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lull::relay {
namespace {

TEST(ReadProcessFacts, TellsCommandParentAndRank) {
  int ready[2];
  int never[2];  // nothing is ever written: the shell waits
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(never), 0);
  pid_t child = fork();
  if (child == 0) {
    setenv("RANK", "13", 1);
    setenv("LOCAL_RANK", "5", 1);
    setenv("WORLD_SIZE", "16", 1);
    dup2(ready[1], STDOUT_FILENO);
    dup2(never[0], STDIN_FILENO);
    // A name with blanks and a bracket, which /proc/PID/stat does not quote.
    execl("/bin/sh", "odd) name", "-c", "echo; read x", nullptr);
    _exit(127);
  }
  char newline;
  ASSERT_EQ(read(ready[0], &newline, 1), 1);
  lull::v1::ProcessInfo info = ReadProcessFacts(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(info.pid(), static_cast<uint32_t>(child));
  EXPECT_EQ(info.parent_pid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(info.command(), "odd) name -c echo; read x");
  EXPECT_EQ(info.rank(), 13);
  EXPECT_EQ(info.local_rank(), 5);
  EXPECT_EQ(info.world_size(), 16);
  EXPECT_EQ(info.executable().substr(0, 1), "/");
}

// Reports told only the ranks of torchrun, `lull ps` those of all launchers.
TEST(ReadProcessFacts, TellsTheRankOfSlurm) {
  int never[2];
  ASSERT_EQ(pipe(never), 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    unsetenv("RANK");
    setenv("SLURM_PROCID", "9", 1);
    setenv("SLURM_LOCALID", "1", 1);
    dup2(ready[1], STDOUT_FILENO);
    dup2(never[0], STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", "echo; read x", nullptr);
    _exit(127);
  }
  char newline;
  ASSERT_EQ(read(ready[0], &newline, 1), 1);
  lull::v1::ProcessInfo info = ReadProcessFacts(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(info.rank(), 9);
  EXPECT_EQ(info.local_rank(), 1);
  EXPECT_EQ(info.world_size(), 0);
}

TEST(ReadProcessFacts, IsEmptyForAProcessThatIsGone) {
  lull::v1::ProcessInfo info = ReadProcessFacts(0);
  EXPECT_EQ(info.command(), "");
  EXPECT_EQ(info.rank(), -1);
  EXPECT_EQ(info.local_rank(), -1);
}

}  // namespace
}  // namespace lull::relay
