#include "daemon/relay/process/keeper_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

class KeeperLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    link_.emplace(UniqueFd(ends[0]));
    keeper_.reset(ends[1]);
  }
  // How many statuses have come.
  int Statuses() {
    Message message;
    int count = 0;
    while (Receive(keeper_.get(), &message) == ChannelResult::kDone) {
      count += message.kind == MessageKind::kStatus ? 1 : 0;
    }
    return count;
  }

  std::optional<KeeperLink> link_;
  UniqueFd keeper_;
};

TEST_F(KeeperLinkTest, TellsAStatusThatHasChangedAndNoOther) {
  WorkerStatus status;
  status.events_read = 7;
  link_->Report(status, 1 * kSecond);
  link_->Report(status, 2 * kSecond);
  EXPECT_EQ(Statuses(), 1);
  status.events_read = 8;
  link_->Report(status, 3 * kSecond);
  EXPECT_EQ(Statuses(), 1);
}

TEST_F(KeeperLinkTest, TellsAStatusAgainThatFoundNoRoom) {
  WorkerStatus status;
  for (status.events_read = 1; status.events_read < 100'000; ++status.events_read) {
    link_->Report(status, status.events_read);
  }
  const int before = Statuses();
  EXPECT_LT(before, 99'999) << "there was room for all";
  --status.events_read;  // the last one, which was not told
  link_->Report(status, 1 * kSecond);
  EXPECT_EQ(Statuses(), 1);
}

TEST_F(KeeperLinkTest, IsDueAFewTimesASecond) {
  EXPECT_TRUE(link_->StatusIsDue(1 * kSecond));
  link_->Report(WorkerStatus(), 1 * kSecond);
  EXPECT_FALSE(link_->StatusIsDue(1 * kSecond + kMs));
  EXPECT_TRUE(link_->StatusIsDue(1 * kSecond + 200 * kMs));
}

TEST_F(KeeperLinkTest, SaysNothingOnceTheKeeperIsGone) {
  Message message;
  EXPECT_EQ(link_->Take(&message), ChannelResult::kWouldBlock);
  keeper_.reset();
  EXPECT_EQ(link_->Take(&message), ChannelResult::kClosed);
  link_->Close();
  EXPECT_FALSE(link_->open());
  EXPECT_EQ(link_->fd(), -1);
  link_->Tell({MessageKind::kReleased, 1, "", {}});
}

}  // namespace
}  // namespace lull::relay
