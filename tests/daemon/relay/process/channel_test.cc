#include "daemon/relay/process/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <utility>

namespace lull::relay {
namespace {

TEST(Channel, WhatWasSentBeforeADeathIsReceivedAlsoByOneWhoseMessagesWereNot) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd here(ends[0]);
  UniqueFd there(ends[1]);
  Message segment{MessageKind::kSegment, 7, "process"};
  segment.fds.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(Send(there.get(), segment), ChannelResult::kDone);
  ASSERT_EQ(Send(there.get(), {MessageKind::kJobEnded, 3, "0"}), ChannelResult::kDone);
  ASSERT_EQ(Send(here.get(), {MessageKind::kStatus, 0, "unread"}),
            ChannelResult::kDone);
  there.reset();
  Message got;
  ASSERT_EQ(Receive(here.get(), &got), ChannelResult::kDone);
  EXPECT_EQ(got.kind, MessageKind::kSegment);
  EXPECT_EQ(got.number, 7u);
  EXPECT_EQ(got.fds.size(), 1u);
  ASSERT_EQ(Receive(here.get(), &got), ChannelResult::kDone);
  EXPECT_EQ(got.kind, MessageKind::kJobEnded);
  EXPECT_EQ(Receive(here.get(), &got), ChannelResult::kClosed);
}

}  // namespace
}  // namespace lull::relay
