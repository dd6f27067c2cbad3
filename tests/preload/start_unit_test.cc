// From candidate to recording, across forks, threads and failures.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "preload/abi/handshake.h"
#include "preload/entry/start.h"
#include "preload/entry/state_page.h"
#include "preload/ring/writer.h"
#include "preload/steps/boundary.h"
#include "tests/preload/support/fake_relay.h"

namespace lull {
namespace {

// A candidate whose relay is `socket`, as after initialize().
void become_candidate(const std::string& socket) {
  settings() = Settings{};
  settings().enabled = true;
  std::strcpy(settings().socket, socket.c_str());
  ASSERT_TRUE(create_state_page());
  g_state->mode = Mode::kCandidate;
  t_thread = {};
}

bool write_event(char* segment) {
  abi::Event* event = reserve_event(segment);
  if (event == nullptr) return false;
  *event = {};
  event->type = abi::EventType::kLaunch;
  commit_event();
  return true;
}

// Open sockets and segments.
size_t ours_among_descriptors() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.starts_with("socket:") || target.starts_with("/memfd:lull")) ++count;
  }
  return count;
}

// Runs `body` in a child made by fork() or by a bare clone; its exit status.
template <typename Body>
int in_child(bool raw, Body body) {
  pid_t child =
      raw ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

TEST(Start, HandsTheSegmentOverAndRecordsFromTheStartingThreadOn) {
  FakeRelay relay;
  become_candidate(relay.path());
  size_t before = ours_among_descriptors();
  errno = 4242;
  char* segment = try_start_recording(Trigger::kGpuCall);
  EXPECT_EQ(errno, 4242);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(segment, recording_segment());
  EXPECT_EQ(t_thread.generation, g_state->generation);
  abi::SegmentView seen(relay.wait_for_target().segment);
  EXPECT_EQ(seen.header().magic, abi::kSegmentMagic);
  EXPECT_EQ(seen.header().version, abi::kVersion);
  EXPECT_EQ(seen.header().pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(seen.header().size, abi::kSegmentSize);
  EXPECT_EQ(seen.control().wait_threshold_ns, abi::kDefaultWaitThresholdNs);
  EXPECT_EQ(seen.control().late_launch_ns, abi::kDefaultLateLaunchNs);
  EXPECT_EQ(seen.ring(0).head, 1u);  // kThreadStart
  // The relay, in this same process, keeps the memfd; its connection closes soon.
  EXPECT_LE(ours_among_descriptors(), before + 2);
}

TEST(Start, RecordsNothingWhileTheRelayHasDisarmedIt) {
  FakeRelay relay;
  become_candidate(relay.path());
  ASSERT_NE(try_start_recording(Trigger::kGpuCall), nullptr);
  abi::SegmentView(relay.wait_for_target().segment).control().armed = 0;
  EXPECT_EQ(recording_segment(), nullptr);
  EXPECT_EQ(try_start_recording(Trigger::kGpuCall), nullptr);
  abi::SegmentView(relay.wait_for_target().segment).control().armed = 1;
  EXPECT_NE(recording_segment(), nullptr);
}

TEST(Start, AStepThatThePauseOfASleepingProcessLiesInIsNone) {
  FakeRelay relay;
  become_candidate(relay.path());
  char* segment = try_start_recording(Trigger::kGpuCall);
  ASSERT_NE(segment, nullptr);
  abi::SegmentView view(segment);
  auto steps = [&] {
    int count = 0;
    for (uint64_t i = 0; i < view.ring(0).head; ++i) {
      const abi::Event& event = view.slot(0, i);
      count += event.type == abi::EventType::kStep && event.duration_ns != 0 ? 1 : 0;
    }
    return count;
  };
  auto boundary = [] { step_boundary(abi::StepSource::kNvtxRange); };
  boundary();
  boundary();
  EXPECT_EQ(steps(), 1);
  view.control().armed = 0;
  boundary();
  EXPECT_EQ(steps(), 1);
  view.control().arming = 1;
  view.control().armed = 1;
  boundary();
  EXPECT_EQ(steps(), 1) << "it began before the sleep";
  boundary();
  EXPECT_EQ(steps(), 2);
}

TEST(Start, HappensOnceHoweverManyThreadsAskForIt) {
  FakeRelay relay;
  become_candidate(relay.path());
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 200; ++k) {
        char* segment = recording_segment_or_start(Trigger::kGpuCall);
        if (segment != nullptr) write_event(segment);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(g_state->mode, Mode::kRecording);
  relay.wait_for_target();
  EXPECT_EQ(relay.targets().size(), 1u);
}

// How many of the events of `count` threads that begin together were written, of 200 of
// each.
uint64_t written_together(int count) {
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        char* segment = recording_segment_or_start(Trigger::kGpuCall);
        if (segment != nullptr && write_event(segment)) ++written;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return written;
}

TEST(Start, OfThreadsThatBeginTogetherLosesNothingToARelayThatAnswersLate) {
  FakeRelay relay(FakeRelay::Manner::kWelcome, [](abi::ControlBlock&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  });
  become_candidate(relay.path());
  EXPECT_EQ(written_together(8), 8u * 200);
  abi::SegmentView view(relay.wait_for_target().segment);
  EXPECT_EQ(view.header().lost_no_ring, 0u);
}

TEST(Start, KeepsNoThreadLongerThanTheFirstOneWaitsForARelayThatIsSilent) {
  FakeRelay relay(FakeRelay::Manner::kSilence);
  become_candidate(relay.path());
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(written_together(8), 0u);
  auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(g_state->mode, Mode::kInert);
  EXPECT_GE(took, std::chrono::milliseconds(abi::kHandshakeTimeoutMs));
  EXPECT_LT(took, std::chrono::milliseconds(abi::kHandshakeTimeoutMs + 1000));
}

TEST(Start, LeavesAProcessInertForGoodWhenNobodyListens) {
  become_candidate("/nonexistent/relay.sock");
  errno = 4242;
  EXPECT_EQ(try_start_recording(Trigger::kGpuCall), nullptr);
  EXPECT_EQ(errno, 4242);
  EXPECT_EQ(g_state->mode, Mode::kInert);
  FakeRelay relay;
  std::strcpy(settings().socket, relay.path().c_str());
  EXPECT_EQ(try_start_recording(Trigger::kGpuCall), nullptr);
  EXPECT_TRUE(relay.targets().empty());
}

TEST(Start, LeavesAProcessInertWhenTheRelayRefuses) {
  FakeRelay relay(FakeRelay::Manner::kRefuse);
  become_candidate(relay.path());
  EXPECT_EQ(try_start_recording(Trigger::kGpuCall), nullptr);
  EXPECT_EQ(g_state->mode, Mode::kInert);
}

TEST(Start, TellsARelayThatAnswersTooLateThatNothingIsRecorded) {
  FakeRelay relay(FakeRelay::Manner::kSilence);
  become_candidate(relay.path());
  EXPECT_EQ(try_start_recording(Trigger::kGpuCall), nullptr);
  EXPECT_EQ(g_state->mode, Mode::kInert);
  abi::SegmentView view(relay.wait_for_target().segment);
  EXPECT_EQ(view.header().ended, static_cast<uint32_t>(abi::EndedBy::kUnanswered));
}

TEST(Start, IsNoReasonForSIGXFSZUnderAFileSizeLimit) {
  FakeRelay relay;
  become_candidate(relay.path());
  int status = in_child(false, [] {
    rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool started = try_start_recording(Trigger::kGpuCall) != nullptr;
    return started ? 1 : g_state->mode == Mode::kInert ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST(Start, PutsTheSignalMaskBack) {
  FakeRelay relay;
  become_candidate(relay.path());
  sigset_t mine, after;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &mine, nullptr);
  ASSERT_NE(try_start_recording(Trigger::kGpuCall), nullptr);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&after, signal), signal == SIGUSR2) << signal;
  }
  sigemptyset(&mine);
  pthread_sigmask(SIG_SETMASK, &mine, nullptr);
}

TEST(Start, DoesNothingBeforeTheLibraryIsInitialised) {
  static State zero;
  State* before = g_state;
  g_state = &zero;
  EXPECT_EQ(recording_segment(), nullptr);
  g_state = before;
}

class ForkChild : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(ByForkAndByBareClone, ForkChild, testing::Bool());

TEST_P(ForkChild, FindsItsStateWiped) {
  FakeRelay relay;
  become_candidate(relay.path());
  ASSERT_NE(try_start_recording(Trigger::kGpuCall), nullptr);
  int status = in_child(GetParam(), [] {
    if (recording_segment() != nullptr) return 1;
    if (g_state->mode != Mode::kUnknown) return 2;
    if (g_state->generation != 0 || g_state->segment != nullptr) return 3;
    // Python alone is no reason any more, and asking is harmless.
    if (try_start_recording(Trigger::kPython) != nullptr) return 4;
    return g_state->mode == Mode::kCandidate ? 0 : 5;
  });
  EXPECT_EQ(status, 0);
  EXPECT_NE(recording_segment(), nullptr);
}

TEST_P(ForkChild, MakesASegmentOfItsOwnAndNeverWritesItsParents) {
  FakeRelay relay;
  become_candidate(relay.path());
  char* segment = try_start_recording(Trigger::kGpuCall);
  ASSERT_TRUE(write_event(segment));
  abi::SegmentView parents(relay.wait_for_target().segment);
  uint64_t head = parents.ring(0).head;
  uint32_t generation = g_state->generation;
  int status = in_child(GetParam(), [&] {
    char* own = recording_segment_or_start(Trigger::kGpuCall);
    if (own == nullptr) return 1;
    if (own == segment) return 2;
    if (g_state->generation == generation) return 3;
    for (int i = 0; i < 100; ++i) write_event(own);
    return 0;
  });
  ASSERT_EQ(status, 0);
  ASSERT_EQ(relay.targets().size(), 2u);
  abi::SegmentView childs(relay.targets()[1].segment);
  EXPECT_NE(childs.header().pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(childs.ring(0).head, 101u);
  EXPECT_EQ(parents.ring(0).head, head);
  EXPECT_EQ(parents.ring(1).head, 0u);
  EXPECT_TRUE(write_event(segment));
  EXPECT_EQ(parents.ring(0).head, head + 1);
}

TEST(ForkedThread, ExitingInTheChildLeavesTheParentsRingOwned) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizer runtimes do not survive pthread_exit in a fork child";
#endif
  FakeRelay relay;
  become_candidate(relay.path());
  char* segment = try_start_recording(Trigger::kGpuCall);
  ASSERT_NE(segment, nullptr);
  std::thread([&] {
    ASSERT_TRUE(write_event(segment));
    std::atomic<abi::OwnerWord>& owner =
        abi::SegmentView(segment).owner(t_thread.ring_index);
    abi::OwnerWord before = owner;
    pid_t child = fork();
    if (child == 0) pthread_exit(nullptr);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(owner, before);
  }).join();
}

TEST(StatePage, IsWipedByHandWhereTheKernelDidNot) {
  ASSERT_TRUE(create_state_page());
  g_state->mode = Mode::kRecording;
  wipe_state_of_parent();  // ours: stays
  EXPECT_EQ(g_state->mode, Mode::kRecording);
  state_page()->owner = getpid() + 1;
  wipe_state_of_parent();
  EXPECT_EQ(g_state->mode, Mode::kUnknown);
  EXPECT_EQ(state_page()->loaded_here, 0u);
}

}  // namespace
}  // namespace lull
