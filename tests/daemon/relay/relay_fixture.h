// A keeper with its worker, fake targets and a fake collector, in a directory of
// their own. Include it in the test programs of this folder alone.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/base/clock.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/relay/process/keeper.h"
#include "tests/daemon/relay/fake_collector.h"
#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {

class RelayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/lull-relay-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    collector_ = std::make_unique<FakeCollector>("unix:" + root_ + "/collector");
  }

  void TearDown() override {
    keeper_.reset();
    collector_.reset();
    for (pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    ASSERT_TRUE(RemoveTree(root_).ok());
  }

  RelayOptions Options() {
    RelayOptions options;
    options.socket_path = root_ + "/run/relay";
    options.spool_directory = root_ + "/spool/job";
    options.collector.target = "unix:" + root_ + "/collector";
    options.job.set_id("0123456789abcdef0123456789abcdef");
    options.job.set_start_ns(MonotonicNs());
    options.grace = absl::Milliseconds(200);
    return options;
  }

  void StartKeeper(RelayOptions options) {
    auto keeper = Keeper::Start(std::move(options));
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    keeper_ = *std::move(keeper);
  }

  // Drives the keeper until `done` or ten seconds have passed.
  template <typename Condition>
  bool PollUntil(Condition done) {
    absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!done() && absl::Now() < deadline) {
      pollfd entry{keeper_->fd(), POLLIN, 0};
      poll(&entry, 1, 5);
      keeper_->Poll();
    }
    return done();
  }

  // A process that says hello with `segment`, and lives until EndTarget().
  pid_t StartTarget(FakeSegment* segment, int* accepted = nullptr) {
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
      char ok = segment->Handshake(root_ + "/run/relay") ? 1 : 0;
      (void)!write(ready[1], &ok, 1);
      while (true) pause();
    }
    close(ready[1]);
    children_.push_back(child);
    char ok = 0;
    EXPECT_TRUE(PollUntil([&] {
      pollfd entry{ready[0], POLLIN, 0};
      return poll(&entry, 1, 0) == 1;
    }));
    EXPECT_EQ(read(ready[0], &ok, 1), 1);
    close(ready[0]);
    if (accepted != nullptr) *accepted = ok;
    return child;
  }

  void EndTarget(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    children_.erase(std::find(children_.begin(), children_.end(), child));
  }

  absl::Status Finish(absl::Duration timeout = absl::Seconds(20)) {
    keeper_->JobEnded(0);
    return keeper_->WaitUntilDelivered(timeout);
  }

  std::string root_;
  std::unique_ptr<FakeCollector> collector_;
  std::unique_ptr<Keeper> keeper_;
  std::vector<pid_t> children_;
};

inline void CommitMany(FakeSegment* segment, uint32_t ring, uint64_t from,
                       uint64_t count) {
  for (uint64_t i = from; i < from + count; ++i) {
    ASSERT_TRUE(segment->Commit(ring, MakeEvent(abi::EventType::kLaunch, i, 1000 + i)));
  }
}

inline void ExpectExactly(const Collected& collected, uint64_t key, uint32_t ring,
                          uint64_t count) {
  auto found = collected.rings.find({key, ring});
  ASSERT_NE(found, collected.rings.end());
  ASSERT_EQ(found->second.values.size(), count);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(found->second.values[i], i);
  EXPECT_EQ(found->second.skipped, 0u);
}

}  // namespace lull::relay
