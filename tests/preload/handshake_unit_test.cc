#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "preload/abi/handshake.h"
#include "preload/entry/handshake.h"
#include "preload/entry/segment.h"
#include "preload/support/clock.h"
#include "tests/preload/support/fake_relay.h"

namespace lull {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

size_t open_descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest() : segment_(create_segment(nullptr)) {}
  ~HandshakeTest() override { discard_segment(segment_, nullptr); }

  Handshake offer(const std::string& path, uint64_t patience_ns = 5 * kSecond,
                  Peer peer = Peer::kAny, Memory memory = Memory::kGiven) {
    size_t before = open_descriptors();
    Handshake outcome = hand_over(path.c_str(), segment_.fd, peer, memory,
                                  monotonic_ns() + patience_ns);
    // A relay thread of this process may hold a few more for a moment.
    EXPECT_LE(open_descriptors(), before + 3);
    return outcome;
  }

  NewSegment segment_;
};

TEST_F(HandshakeTest, GivesTheSegmentToTheRelay) {
  ASSERT_NE(segment_.base, nullptr);
  FakeRelay relay;
  ASSERT_EQ(offer(relay.path()), Handshake::kAccepted);
  FakeRelay::Target target = relay.wait_for_target();
  EXPECT_EQ(target.pid, getpid());
  abi::SegmentView(segment_.base).header().ringless_gpu_calls = 17;
  EXPECT_EQ(abi::SegmentView(target.segment).header().ringless_gpu_calls, 17u);
}

TEST_F(HandshakeTest, GivesASegmentThatNobodyCanResize) {
  FakeRelay relay;
  ASSERT_EQ(offer(relay.path()), Handshake::kAccepted);
  int fd = relay.wait_for_target().memfd;
  int seals = fcntl(fd, F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_EQ(ftruncate(fd, 0), -1);
}

TEST_F(HandshakeTest, HandsOverItsOwnMemoryForReadingAlone) {
  FakeRelay relay;
  size_t before = open_descriptors();
  ASSERT_EQ(offer(relay.path()), Handshake::kAccepted);
  FakeRelay::Target target = relay.wait_for_target();
  ASSERT_GE(target.memory, 0);
  // The relay's thread may not have closed the connection yet.
  const uint64_t deadline_ns = monotonic_ns() + 5 * kSecond;
  while (open_descriptors() != before + 2 && monotonic_ns() < deadline_ns) usleep(100);
  EXPECT_EQ(open_descriptors(), before + 2) << "those that the relay has";
  volatile uint64_t ours = 0x1234567890abcdef;
  uint64_t seen = 0;
  const auto at = static_cast<off_t>(reinterpret_cast<uintptr_t>(&ours));
  ASSERT_EQ(pread(target.memory, &seen, sizeof seen, at), ssize_t{sizeof seen});
  EXPECT_EQ(seen, ours);
  EXPECT_EQ(pwrite(target.memory, &seen, sizeof seen, at), -1);
}

TEST_F(HandshakeTest, KeepsItsMemoryWhereNobodyWantsIt) {
  FakeRelay relay;
  ASSERT_EQ(offer(relay.path(), kSecond, Peer::kAny, Memory::kKept),
            Handshake::kAccepted);
  EXPECT_EQ(relay.wait_for_target().memory, -1);
}

// This thread alone, unlike what libc's function does.
bool become(uid_t user) { return syscall(SYS_setresuid, -1, user, -1) == 0; }

// A root process below an unprivileged user's lull: its segment shows what it does, its
// memory all that it has.
TEST_F(HandshakeTest, KeepsItsMemoryFromAnotherUsersRelay) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0 || !become(kNobody)) GTEST_SKIP() << "needs root";
  FakeRelay relay;
  ASSERT_TRUE(become(0));
  ASSERT_EQ(offer(relay.path()), Handshake::kAccepted);
  EXPECT_EQ(relay.wait_for_target().memory, -1);
}

TEST_F(HandshakeTest, SaysThatItHasNoSegmentToGive) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = testing::TempDir() + "regret." + std::to_string(getpid());
  std::strcpy(address.sun_path, path.c_str());
  int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  size_t before = open_descriptors();
  say_unrecorded(path.c_str(), monotonic_ns() + kSecond);
  EXPECT_EQ(open_descriptors(), before);
  int peer = accept(listener, nullptr, nullptr);
  abi::Hello hello = {};
  ASSERT_EQ(recv(peer, &hello, sizeof hello, 0), ssize_t{sizeof hello});
  EXPECT_EQ(hello.magic, abi::kUnrecordedMagic);
  EXPECT_EQ(hello.version, abi::kVersion);
  close(peer);
  close(listener);
  unlink(path.c_str());
}

TEST_F(HandshakeTest, AcceptsItsOwnUserBehindAGuessedPath) {
  FakeRelay relay;
  EXPECT_EQ(offer(relay.path(), kSecond, Peer::kSameUser), Handshake::kAccepted);
}

TEST_F(HandshakeTest, TakesAnyOtherAnswerForARefusal) {
  using Manner = FakeRelay::Manner;
  for (Manner manner : {Manner::kRefuse, Manner::kOtherVersion, Manner::kShortAnswer,
                        Manner::kHangUp}) {
    FakeRelay relay(manner);
    EXPECT_EQ(offer(relay.path()), Handshake::kRefused) << static_cast<int>(manner);
  }
}

// A program that closes all that it does not know, like a daemon, and opens its own.
TEST_F(HandshakeTest, TouchesNoDescriptorThatTookThePlaceOfItsSocket) {
  using Manner = FakeRelay::Manner;
  FakeRelay relay(Manner::kSilence);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
  ASSERT_EQ(write(pair[1], "precious", 8), 8);
  int next = dup(pair[1]);
  close(next);
  std::thread thread([&] {
    hand_over(relay.path().c_str(), segment_.fd, Peer::kAny, Memory::kGiven,
              monotonic_ns() + kSecond);
  });
  usleep(200'000);  // until it waits
  ASSERT_EQ(dup2(pair[0], next), next);
  thread.join();
  char bytes[16];
  EXPECT_EQ(recv(next, bytes, sizeof bytes, MSG_DONTWAIT), 8);
  for (int fd : {next, pair[0], pair[1]}) close(fd);
}

TEST_F(HandshakeTest, ClosesNoDescriptorThatTookThePlaceOfTheSegments) {
  NewSegment segment = create_segment(nullptr);
  ASSERT_EQ(dup2(STDIN_FILENO, segment.fd), segment.fd);
  discard_segment(segment, nullptr);
  EXPECT_EQ(close(segment.fd), 0);
}

TEST_F(HandshakeTest, WaitsNoLongerThanItMay) {
  using Manner = FakeRelay::Manner;
  FakeRelay relay(Manner::kSilence);
  uint64_t start = monotonic_ns();
  EXPECT_EQ(offer(relay.path(), kSecond / 5), Handshake::kRefused);
  uint64_t waited = monotonic_ns() - start;
  EXPECT_GE(waited, kSecond / 5);
  EXPECT_LT(waited, 2 * kSecond);
}

TEST_F(HandshakeTest, WaitsNoLongerThanItMayForAFullBacklog) {
  FakeRelay relay(FakeRelay::Manner::kNotAccepting);
  std::vector<int> queue;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, relay.path().c_str());
  for (;;) {  // until the listener has no room for another connection
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    queue.push_back(fd);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) break;
  }
  uint64_t start = monotonic_ns();
  EXPECT_EQ(offer(relay.path(), kSecond / 10), Handshake::kRefused);
  EXPECT_LT(monotonic_ns() - start, 2 * kSecond);
  for (int fd : queue) close(fd);
}

TEST_F(HandshakeTest, SaysWhenNobodyListens) {
  EXPECT_EQ(offer("/nonexistent/relay.sock"), Handshake::kUnreachable);
  std::string path;
  {
    FakeRelay gone;
    path = gone.path() + ".dead";
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    close(fd);
    EXPECT_EQ(offer(path), Handshake::kUnreachable);
    unlink(path.c_str());
  }
  EXPECT_EQ(offer(std::string(200, 'x')), Handshake::kRefused);
  EXPECT_EQ(offer(""), Handshake::kRefused);
}

TEST_F(HandshakeTest, SurvivesAStormOfSignals) {
  struct sigaction action = {}, before = {};
  static volatile sig_atomic_t caught;
  caught = 0;
  action.sa_handler = [](int) { caught = caught + 1; };  // no SA_RESTART
  sigaction(SIGALRM, &action, &before);
  sigset_t alarm;  // for this thread, not for the relay's
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  FakeRelay silent(FakeRelay::Manner::kSilence);
  pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  itimerval every = {{0, 300}, {0, 300}}, never = {};
  setitimer(ITIMER_REAL, &every, nullptr);
  EXPECT_EQ(offer(silent.path(), kSecond / 5), Handshake::kRefused);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(caught, 0);
}

}  // namespace
}  // namespace lull
