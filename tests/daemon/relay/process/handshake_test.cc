#include "daemon/relay/process/handshake.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "preload/abi/handshake.h"
#include "preload/abi/version.h"
#include "preload/stacks/layouts/cpython_3_11.h"

namespace lull::relay {
namespace {

class Handshakes : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "handshake." + std::to_string(getpid()) + "/relay";
    auto listener = ListenForTargets(path_);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }

  // A DataLoader's worker that says hello, and then ends or waits to be killed.
  pid_t Worker(bool ends) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      strcpy(address.sun_path, path_.c_str());
      int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
      abi::WorkerHello hello = {};
      hello.hello = {abi::kWorkerMagic, abi::kVersion, static_cast<uint32_t>(getpid())};
      hello.python_state = hello.python_thread = 0x7f0000002000;
      hello.code_type = 0x7f0000001000;
      hello.layout = kCPython311;
      bool said =
          connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
          send(fd, &hello, sizeof(hello), 0) == sizeof(hello) &&
          write(ready[1], "", 1) == 1;
      if (!ends && said) pause();
      _exit(said ? 0 : 1);
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    int status = 0;
    if (ends) {
      EXPECT_EQ(waitpid(child, &status, 0), child);
    }
    EXPECT_EQ(status, 0);
    return child;
  }

  std::vector<Newcomer> Poll() {
    std::vector<Newcomer> accepted;
    HandshakeListener handshakes(listener_.get());
    handshakes.Poll([&](Newcomer newcomer) {
      accepted.push_back(std::move(newcomer));
      return true;
    });
    return accepted;
  }

  std::string path_;
  UniqueFd listener_;
};

TEST_F(Handshakes, TakeADataLoadersWorkerThatLives) {
  pid_t worker = Worker(/*ends=*/false);
  std::vector<Newcomer> accepted = Poll();
  ASSERT_EQ(accepted.size(), 1u);
  EXPECT_TRUE(accepted[0].loader);
  EXPECT_EQ(accepted[0].pid, worker);
  EXPECT_TRUE(accepted[0].pidfd);
  EXPECT_TRUE(accepted[0].memfd);
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
}

// It waits for no answer. Nobody would ever see its end.
TEST_F(Handshakes, LeaveOutAWorkerThatIsGone) {
  Worker(/*ends=*/true);
  EXPECT_TRUE(Poll().empty());
}

// A worker that is started has a copy of each descriptor until it calls exec, on a busy
// machine for long. A connection that was answered is over all the same.
TEST_F(Handshakes, CountNobodyAgainWhileAForkHoldsTheConnection) {
  HandshakeListener handshakes(listener_.get());
  auto refuse = [](Newcomer) { return false; };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path_.c_str());
  UniqueFd target(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(
      connect(target.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  handshakes.Poll(refuse);  // accepted, nothing said so far
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t fork_child = fork();
  if (fork_child == 0) {
    close(target.get());  // which another process has
    if (write(ready[1], "", 1) == 1) pause();
    _exit(0);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  ASSERT_EQ(send(target.get(), "?", 1, 0), 1);
  for (int i = 0; i < 5; ++i) handshakes.Poll(refuse);
  target.reset();  // the other end hangs up, which is an event, too
  for (int i = 0; i < 5; ++i) handshakes.Poll(refuse);
  EXPECT_EQ(handshakes.refused(), 1u);
  kill(fork_child, SIGKILL);
  waitpid(fork_child, nullptr, 0);
}

}  // namespace
}  // namespace lull::relay
