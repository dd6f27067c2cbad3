#include "daemon/relay/process/worker_link.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace lull::relay {
namespace {

constexpr int kPatienceMs = 60'000;

// Workers that only wait; what one of them would say is said by the test.
class WorkerLinkTest : public ::testing::Test {
 protected:
  absl::StatusOr<WorkerProcess> StartOne() {
    if (fails_) return absl::UnavailableError("no more processes");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::InternalError("socketpair");
    }
    WorkerProcess worker;
    worker.channel.reset(ends[0]);
    theirs_.reset(ends[1]);
    worker.pid = fork();
    if (worker.pid == 0) {
      close_range(3, ~0u, 0);  // only the test holds the other end
      while (true) pause();
    }
    return worker;
  }

  void AwaitReadable() const {
    pollfd entry{epoll_.get(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, kPatienceMs), 1);
  }
  void Say(MessageKind kind, uint64_t number, std::string body) {
    ASSERT_EQ(Send(theirs_.get(), {kind, number, std::move(body), {}}),
              ChannelResult::kDone);
  }
  std::vector<MessageKind> Heard() {
    std::vector<MessageKind> kinds;
    Message message;
    while (Receive(theirs_.get(), &message) == ChannelResult::kDone) {
      kinds.push_back(message.kind);
    }
    return kinds;
  }

  bool fails_ = false;
  UniqueFd theirs_;  // the present worker's end
  UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  WorkerLink link_{epoll_.get(), [this] { return StartOne(); }};
};

TEST_F(WorkerLinkTest, QueuesNothingForAWorkerThatIsNotThere) {
  link_.Queue({MessageKind::kWake, 0, "", {}});
  EXPECT_TRUE(link_.Flush());
  ASSERT_TRUE(link_.Start().ok());
  link_.Queue({MessageKind::kSleep, 0, "", {}});
  EXPECT_TRUE(link_.Flush());
  EXPECT_EQ(Heard(), std::vector<MessageKind>{MessageKind::kSleep});
  kill(link_.pid(), SIGKILL);
  link_.End();
}

TEST_F(WorkerLinkTest, KeepsTheStatusAndHandsOutTheRest) {
  ASSERT_TRUE(link_.Start().ok());
  WorkerStatus said;
  said.events_read = 7;
  Say(MessageKind::kStatus, 0, EncodeStatus(said));
  Say(MessageKind::kReleased, 5, "");
  Say(MessageKind::kDelivered, 0, "");
  AwaitReadable();
  std::vector<uint64_t> released;
  link_.Receive([&](const Message& message) {
    EXPECT_EQ(message.kind, MessageKind::kReleased);
    released.push_back(message.number);
  });
  EXPECT_EQ(released, std::vector<uint64_t>{5});
  EXPECT_EQ(link_.status().events_read, 7u);
  EXPECT_GE(link_.Progress(), 7u);
  EXPECT_TRUE(link_.delivered());
  kill(link_.pid(), SIGKILL);
  link_.End();
  EXPECT_EQ(link_.pid(), -1);
}

TEST_F(WorkerLinkTest, SendsLaterWhatFindsNoRoom) {
  ASSERT_TRUE(link_.Start().ok());
  const std::string large(10'000, 'x');
  size_t queued = 0;
  do {
    link_.Queue({MessageKind::kSegment, ++queued, large, {}});
  } while (link_.Flush() && queued < 10'000);
  ASSERT_LT(queued, 10'000u) << "the channel takes everything";
  size_t heard = Heard().size();
  EXPECT_LT(heard, queued);
  for (int i = 0; heard < queued && i < 10'000; ++i) {
    AwaitReadable();  // its timer says when to try again
    link_.Receive([](const Message&) {});
    link_.Flush();
    heard += Heard().size();
  }
  EXPECT_EQ(heard, queued);
  kill(link_.pid(), SIGKILL);
  link_.End();
}

TEST_F(WorkerLinkTest, StartsAnotherOneWhenItsTimeHasCome) {
  ASSERT_TRUE(link_.Start().ok());
  EXPECT_FALSE(link_.RestartIsDue());
  const pid_t first = link_.pid();
  link_.Queue({MessageKind::kWake, 0, "", {}});
  theirs_.reset();
  AwaitReadable();
  link_.Receive([](const Message&) {});
  EXPECT_FALSE(link_.running());
  EXPECT_EQ(kill(first, 0), -1) << "it was reaped";
  for (int i = 0; i < 100 && !link_.RestartIsDue(); ++i) {
    AwaitReadable();
    link_.Receive([](const Message&) {});
  }
  ASSERT_TRUE(link_.Start().ok());
  EXPECT_EQ(link_.restarts(), 1u);
  EXPECT_TRUE(link_.Flush());
  EXPECT_TRUE(Heard().empty()) << "of what was on the way to the first one";
  kill(link_.pid(), SIGKILL);
  link_.End();
}

TEST_F(WorkerLinkTest, TriesLaterWhenNoneCanBeStarted) {
  fails_ = true;
  EXPECT_FALSE(link_.Start().ok());
  EXPECT_FALSE(link_.running());
  EXPECT_FALSE(link_.RestartIsDue()) << "not at once";
  AwaitReadable();
  link_.Receive([](const Message&) {});
  EXPECT_TRUE(link_.RestartIsDue());
}

TEST_F(WorkerLinkTest, TellsAWorkerToStopAndLeavesAnotherAlone) {
  ASSERT_TRUE(link_.Start().ok());
  const pid_t left = link_.pid();
  link_.Leave();
  EXPECT_FALSE(link_.running());
  EXPECT_EQ(kill(left, 0), 0);
  ReapWorkerProcess(left, 0);
  ASSERT_TRUE(link_.Start().ok());
  const pid_t stopped = link_.pid();
  link_.Abandon();
  EXPECT_EQ(kill(stopped, 0), -1);
  EXPECT_EQ(Heard(), std::vector<MessageKind>{MessageKind::kAbandon});
}

}  // namespace
}  // namespace lull::relay
