// What a worker does when its keeper, a `lull run` or `lull attach`, is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "preload/abi/handshake.h"
#include "tests/daemon/relay/relay_fixture.h"

namespace lull::relay {
namespace {

using ::testing::IsEmpty;

class OrphanTest : public RelayTest {
 protected:
  // Starts a keeper in a process of its own, to be killed.
  void StartVictim(RelayOptions options) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    victim_ = fork();
    if (victim_ == 0) {
      StartKeeper(std::move(options));
      worker_ = keeper_ == nullptr ? 0 : keeper_->worker_pid();
      (void)!write(ready[1], &worker_, sizeof(worker_));
      while (true) PollUntil([] { return false; });
    }
    close(ready[1]);
    ASSERT_EQ(read(ready[0], &worker_, sizeof(worker_)), ssize_t{sizeof(worker_)});
    ASSERT_GT(worker_, 0);
    close(ready[0]);
  }
  void KillVictim() {
    kill(victim_, SIGKILL);
    waitpid(victim_, nullptr, 0);
  }
  // A target of the victim, which nobody in this process serves; armed.
  pid_t StartArmed(FakeSegment* segment) {
    pid_t target = fork();
    if (target == 0) {
      // One that was made anew is listened to in a moment.
      while (!segment->Handshake(root_ + "/run/relay")) usleep(1000);
      while (true) pause();
    }
    children_.push_back(target);
    EXPECT_TRUE(Wait([&] { return segment->view().control().armed == 1; }));
    return target;
  }
  template <typename Condition>
  static bool Wait(Condition done) {
    absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!done() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(2));
    return done();
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(Wait([&] { return !std::filesystem::exists(root_ + "/spool/job"); }));
    EXPECT_FALSE(std::filesystem::exists(root_ + "/run/relay"));
  }

  pid_t victim_ = -1, worker_ = -1;
};

TEST_F(OrphanTest, OfARunServesOldAndNewTargetsToTheirEnd) {
  collector_->Start();
  FakeSegment before;
  FakeSegment after;
  StartVictim(Options());
  pid_t target = StartArmed(&before);
  KillVictim();
  CommitMany(&before, 0, 0, 1000);

  pid_t second = fork();  // a target that starts after the keeper's death
  if (second == 0) {
    _exit(after.Handshake(root_ + "/run/relay") &&
                  after.Commit(0, MakeEvent(abi::EventType::kLaunch, 0))
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(second, &status, 0);
  EXPECT_EQ(status, 0) << "the orphaned worker answers handshakes";
  EndTarget(target);
  ASSERT_TRUE(collector_->WaitForJobEnd(absl::Seconds(15)));
  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  ExpectExactly(got, 1, 0, 1000);
  ExpectExactly(got, 2, 0, 1);
  EXPECT_FALSE(got.job_end->known());
  ExpectNothingLeft();
}

TEST_F(OrphanTest, MakesItsSocketAnewWhenItsFolderIsRemoved) {
  collector_->Start();
  FakeSegment before;
  FakeSegment after;
  StartVictim(Options());
  pid_t target = StartArmed(&before);
  KillVictim();
  absl::SleepFor(absl::Milliseconds(100));
  SayHello(root_ + "/run/relay", -1, abi::kUnrecordedMagic, abi::kVersion);
  absl::SleepFor(absl::Milliseconds(100));
  ASSERT_TRUE(RemoveTree(root_ + "/run").ok());
  ASSERT_TRUE(Wait([&] { return std::filesystem::exists(root_ + "/run/relay"); }));
  pid_t second = StartArmed(&after);
  CommitMany(&after, 0, 0, 5);
  EndTarget(target);
  EndTarget(second);
  ASSERT_TRUE(collector_->WaitForJobEnd(absl::Seconds(15)));
  Collected got = collector_->collected();
  ExpectExactly(got, 2, 0, 5);
  EXPECT_GT(got.job_end->unreachable_ns(), 0u);
  EXPECT_EQ(got.job_end->unrecorded_processes(), 1u) << "on the socket before";
  ExpectNothingLeft();
}

TEST_F(OrphanTest, AnswersOnTheSocketThatItsKeeperMadeAnew) {
  collector_->Start();
  FakeSegment before;
  FakeSegment after;
  StartVictim(Options());
  pid_t target = StartArmed(&before);
  ASSERT_TRUE(RemoveTree(root_ + "/run").ok());
  ASSERT_TRUE(Wait([&] { return std::filesystem::exists(root_ + "/run/relay"); }));
  absl::SleepFor(absl::Milliseconds(200));  // for the worker to hear of it
  KillVictim();
  pid_t second = fork();
  if (second == 0) _exit(after.Handshake(root_ + "/run/relay") ? 0 : 1);
  int status = 0;
  waitpid(second, &status, 0);
  EXPECT_EQ(status, 0);
  EndTarget(target);
  ASSERT_TRUE(collector_->WaitForJobEnd(absl::Seconds(15)));
  EXPECT_GT(collector_->collected().job_end->unreachable_ns(), 0u)
      << "also what the keeper saw of it";
  ExpectNothingLeft();
}

TEST_F(OrphanTest, OfAnAttachPutsTheTargetToSleepAndEndsTheJob) {
  collector_->Start();
  FakeSegment segment;
  RelayOptions options = Options();
  options.attached = true;
  StartVictim(options);
  pid_t target = StartArmed(&segment);
  CommitMany(&segment, 0, 0, 1000);
  KillVictim();
  ASSERT_TRUE(collector_->WaitForJobEnd(absl::Seconds(15)));
  EXPECT_EQ(segment.view().control().armed, 0u);
  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  ExpectExactly(got, 1, 0, 1000);
  EXPECT_FALSE(got.job_end->known());
  ExpectNothingLeft();
  EXPECT_EQ(kill(target, 0), 0) << "the job itself goes on";
  EndTarget(target);
}

TEST_F(OrphanTest, EndsWhenItsDirectoryIsTakenAway) {
  StartVictim(Options());
  absl::SleepFor(absl::Milliseconds(200));
  KillVictim();
  ASSERT_TRUE(RemoveTree(root_ + "/spool").ok());
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, worker_, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  EXPECT_TRUE(!pidfd || poll(&ended, 1, 10'000) == 1);
}

// What a target has left can be written nowhere any more: the worker must not wait for
// that, twenty times a second and for ever.
TEST_F(OrphanTest, EndsWithoutItsDirectoryAlsoIfATargetIsNotReadToItsEnd) {
  FakeSegment segment;
  RelayOptions options = Options();
  options.spool_limit_bytes = kMinSpoolBytes;  // its files are small
  StartVictim(options);
  pid_t target = StartArmed(&segment);
  KillVictim();
  absl::SleepFor(absl::Milliseconds(100));
  ASSERT_TRUE(RemoveTree(root_ + "/spool").ok());
  for (uint64_t i = 0; i < 300'000; ++i) {  // more than a file that is still open takes
    (void)segment.Commit(0, MakeEvent(abi::EventType::kLaunch, i, i * i * 7919));
    if (i % 1000 == 0) absl::SleepFor(absl::Milliseconds(5));
  }
  EndTarget(target);
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, worker_, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  EXPECT_TRUE(!pidfd || poll(&ended, 1, 10'000) == 1);
}

}  // namespace
}  // namespace lull::relay
