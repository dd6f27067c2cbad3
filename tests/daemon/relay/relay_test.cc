// Keeper, worker and upstream together: targets that come and go, workers that are
// killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "preload/abi/handshake.h"
#include "preload/abi/hook_list.h"
#include "tests/daemon/relay/relay_fixture.h"

namespace lull::relay {
namespace {

using ::testing::IsEmpty;

TEST_F(RelayTest, DeliversEverythingThatAKilledTargetHadCommitted) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  segment.view().header().python_version = (3 << 8) | 11;
  abi::Ref code = segment.AddCode("/home/me/train.py", "main.<locals>.step", 40);
  abi::Event sync = MakeEvent(abi::EventType::kSync, 0);
  sync.py_stack = segment.AddPythonStack({{code, -1}});
  sync.api = static_cast<uint16_t>(abi::HookId::k_cudaStreamSynchronize);
  ASSERT_TRUE(segment.Commit(3, sync));
  CommitMany(&segment, 3, 1, 5000);
  segment.view().ring(3).lost = 17;
  segment.view().header().ringless_gpu_calls = 5000;
  EndTarget(target);
  ASSERT_EQ(Finish(), absl::OkStatus());

  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  ExpectExactly(got, 1, 3, 5001);
  EXPECT_EQ(got.processes[1].pid(), static_cast<uint32_t>(target));
  EXPECT_EQ(got.processes[1].parent_pid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(got.processes[1].python_version(), "3.11");
  EXPECT_EQ(got.processes[1].rank(), -1);
  ASSERT_EQ(got.counters[1].rings_size(), 1);
  EXPECT_EQ(got.counters[1].rings(0).committed(), 5001u);
  EXPECT_EQ(got.counters[1].rings(0).lost_full(), 17u);
  EXPECT_EQ(got.counters[1].gpu_calls(), 5000u);
  EXPECT_EQ(got.ended.count(1), 1u);
  ASSERT_TRUE(got.job_end.has_value());
  EXPECT_TRUE(got.job_end->known());
  EXPECT_EQ(got.job_end->exit_status(), 0);
  const auto& stack = got.stacks.at({1, sync.py_stack});
  ASSERT_EQ(stack.frames_size(), 1);
  EXPECT_EQ(stack.frames(0).function(), "main.<locals>.step");
  EXPECT_EQ(stack.frames(0).file(), "/home/me/train.py");
  EXPECT_EQ(stack.frames(0).line(), 40);
  EXPECT_FALSE(std::filesystem::exists(root_ + "/spool/job"));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/run/relay"));
}

// Whoever typed `lull run` waits for that, and the worker of a quiet job looks seldom.
TEST_F(RelayTest, TheEndOfAQuietJobIsDeliveredAtOnce) {
  constexpr auto kSoon = absl::Milliseconds(40);  // quiet machine: 10 ms
  constexpr int kTries = 10;                      // of one that is not quiet
  collector_->Start();
  absl::Duration took = absl::InfiniteDuration();
  for (int i = 0; i < kTries && took >= kSoon; ++i) {
    StartKeeper(Options());
    absl::SleepFor(absl::Milliseconds(1400));  // until it looks as seldom as it may
    const absl::Time begin = absl::Now();
    ASSERT_EQ(Finish(), absl::OkStatus());
    took = absl::Now() - begin;
  }
  EXPECT_LT(took, kSoon);
}

TEST_F(RelayTest, TellsTheCollectorHowTheHooksAreCalled) {
  collector_->Start();
  StartKeeper(Options());
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_EQ(got.hello.job().id(), Options().job.id());
  EXPECT_EQ(got.hello.job().gpu_mode(), lull::v1::GPU_MODE_WINDOW);
  EXPECT_EQ(got.hello.job().gpu_schedule(), ScheduleText(GpuPlan()));
  bool found = false;
  for (const auto& api : got.hello.apis()) {
    if (api.name() != "cudaStreamSynchronize") continue;
    found = true;
    EXPECT_EQ(api.id(), static_cast<uint32_t>(abi::HookId::k_cudaStreamSynchronize));
    EXPECT_EQ(api.family(), "sync");
  }
  EXPECT_TRUE(found);
}

TEST_F(RelayTest, ArmsATargetAndSetsItsThresholds) {
  collector_->Start();
  RelayOptions options = Options();
  options.job.mutable_settings()->set_wait_threshold_ns(123'456);
  StartKeeper(options);
  FakeSegment segment;
  StartTarget(&segment);
  abi::ControlBlock& control = segment.view().control();
  ASSERT_TRUE(PollUntil([&] { return control.armed.load() == 1; }));
  EXPECT_EQ(control.wait_threshold_ns.load(), 123'456u);
  EXPECT_EQ(control.late_launch_ns.load(), abi::kDefaultLateLaunchNs);
}

lull::v1::ArmCommand ArmCommand(uint64_t number, bool armed, uint64_t for_ns = 0) {
  lull::v1::ArmCommand command;
  command.set_number(number);
  command.set_armed(armed);
  command.set_for_ns(for_ns);
  return command;
}

TEST_F(RelayTest, ATargetOfADormantJobSleepsFromItsWelcomeOn) {
  collector_->Start();
  RelayOptions options = Options();
  options.dormant = true;
  StartKeeper(options);
  kill(keeper_->worker_pid(), SIGSTOP);  // it is not the worker that puts it to sleep
  FakeSegment segment;
  segment.view().control().armed = 1;  // as the shim begins
  int accepted = 0;
  StartTarget(&segment, &accepted);
  ASSERT_EQ(accepted, 1);
  EXPECT_EQ(segment.view().control().armed, 0u);
  EXPECT_GT(segment.view().control().asleep_since_ns, 0u);
  kill(keeper_->worker_pid(), SIGCONT);
  ASSERT_EQ(Finish(), absl::OkStatus());
  EXPECT_TRUE(collector_->collected().hello.job().dormant());
  EXPECT_EQ(collector_->collected().stretches.size(), 0u);
}

TEST_F(RelayTest, ArmsAndDisarmsAllTargetsOnCommand) {
  collector_->Start();
  RelayOptions options = Options();
  options.dormant = true;
  StartKeeper(options);
  FakeSegment first, second;
  StartTarget(&first);
  StartTarget(&second);
  ASSERT_TRUE(PollUntil([&] {
    auto arming = collector_->collected().arming;
    return arming && arming->processes() == 2 && !arming->armed();
  }));
  lull::v1::ArmCommand arm = ArmCommand(1, true);
  arm.mutable_gpu()->set_mode(lull::v1::GPU_MODE_CONTINUOUS);
  collector_->Command(arm);
  ASSERT_TRUE(PollUntil([&] { return collector_->collected().arming->armed(); }));
  EXPECT_EQ(collector_->collected().arming->processes(), 2u);
  for (FakeSegment* segment : {&first, &second}) {
    abi::ControlBlock& control = segment->view().control();
    EXPECT_EQ(control.armed, 1u);
    EXPECT_EQ(control.arming, 1u);
    EXPECT_EQ(control.gpu_mode, uint32_t{lull::v1::GPU_MODE_CONTINUOUS});
  }
  FakeSegment third;  // comes to an armed job
  StartTarget(&third);
  ASSERT_TRUE(
      PollUntil([&] { return collector_->collected().arming->processes() == 3; }));
  EXPECT_EQ(third.view().control().armed, 1u);

  collector_->Command(ArmCommand(2, false));
  ASSERT_TRUE(PollUntil([&] { return !collector_->collected().arming->armed(); }));
  EXPECT_EQ(first.view().control().armed, 0u);
  EXPECT_EQ(third.view().control().armed, 0u);
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  ASSERT_EQ(got.stretches.size(), 1u);
  EXPECT_GT(got.stretches[1].start_ns(), got.hello.job().start_ns());
  EXPECT_GT(got.stretches[1].end_ns(), got.stretches[1].start_ns());
}

TEST_F(RelayTest, SleepsAgainByItsOwnClockWhileTheCollectorIsAway) {
  collector_->Start();
  RelayOptions options = Options();
  options.dormant = true;
  StartKeeper(options);
  FakeSegment segment;
  StartTarget(&segment);
  collector_->Command(ArmCommand(1, true, 500'000'000));
  ASSERT_TRUE(PollUntil([&] { return segment.view().control().armed == 1; }));
  collector_->Stop();
  ASSERT_TRUE(PollUntil([&] { return segment.view().control().armed == 0; }));
  collector_->Start();
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  uint64_t length = got.stretches[1].end_ns() - got.stretches[1].start_ns();
  EXPECT_GE(length, 500'000'000u);
  EXPECT_LT(length, 5'000'000'000u);
}

TEST_F(RelayTest, AWorkerThatIsKilledLeavesTheJobAsItIs) {
  collector_->Start();
  RelayOptions options = Options();
  options.dormant = true;
  StartKeeper(options);
  FakeSegment segment;
  StartTarget(&segment);
  auto restart = [&] {
    uint32_t before = keeper_->status().worker_restarts;
    kill(keeper_->worker_pid(), SIGKILL);
    ASSERT_TRUE(PollUntil([&] {
      return keeper_->status().worker_restarts > before && keeper_->status().connected;
    }));
  };
  restart();
  EXPECT_EQ(segment.view().control().armed, 0u);
  lull::v1::ArmCommand arm = ArmCommand(1, true, 3'000'000'000);
  collector_->Command(arm);
  ASSERT_TRUE(PollUntil([&] { return segment.view().control().armed == 1; }));
  restart();
  EXPECT_EQ(segment.view().control().armed, 1u);
  EXPECT_EQ(segment.view().control().arming, 1u) << "steps count on";
  // The successor ends the time that its predecessor began.
  ASSERT_TRUE(PollUntil([&] { return segment.view().control().armed == 0; }));
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  ASSERT_EQ(got.stretches.size(), 1u);
  uint64_t length = got.stretches[1].end_ns() - got.stretches[1].start_ns();
  EXPECT_GE(length, 3'000'000'000u);
  EXPECT_LT(length, 8'000'000'000u);
}

// `lull attach` asks once, and a worker may die before it has heeded that.
TEST_F(RelayTest, ASuccessorWakesUpWhatItsPredecessorWasAskedTo) {
  collector_->Start();
  RelayOptions options = Options();
  options.dormant = true;
  StartKeeper(options);
  FakeSegment segment;
  StartTarget(&segment);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().connected; }));
  auto kill_before_it_hears = [&](auto ask) {
    const uint32_t before = keeper_->status().worker_restarts;
    kill(keeper_->worker_pid(), SIGSTOP);
    ask();
    kill(keeper_->worker_pid(), SIGKILL);
    ASSERT_TRUE(PollUntil([&] { return keeper_->status().worker_restarts > before; }));
  };
  kill_before_it_hears([&] { keeper_->Wake(); });
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().armed; }));
  EXPECT_EQ(segment.view().control().armed, 1u);
  // Once: somebody else may put it to sleep.
  collector_->Command(ArmCommand(1, false));
  ASSERT_TRUE(PollUntil([&] { return !keeper_->status().armed; }));
  kill_before_it_hears([] {});
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().connected; }));
  EXPECT_EQ(segment.view().control().armed, 0u);
  kill_before_it_hears([&] {
    keeper_->Wake();
    keeper_->Sleep();
  });
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().connected; }));
  EXPECT_EQ(segment.view().control().armed, 0u);
  ASSERT_EQ(Finish(), absl::OkStatus());
  EXPECT_EQ(collector_->collected().stretches.size(), 1u);
}

TEST_F(RelayTest, ATargetKnowsThePlanOfGpuTracingWhenItIsWelcome) {
  collector_->Start();
  RelayOptions options = Options();
  options.gpu = *ParseGpuSchedule("skip_first=1,wait=2,warmup=3,active=4,repeat=5");
  StartKeeper(options);
  kill(keeper_->worker_pid(), SIGSTOP);  // it is not the worker that writes it
  FakeSegment segment;
  int accepted = 0;
  StartTarget(&segment, &accepted);
  kill(keeper_->worker_pid(), SIGCONT);
  ASSERT_EQ(accepted, 1);
  abi::ControlBlock& control = segment.view().control();
  EXPECT_EQ(control.gpu_mode, uint32_t{lull::v1::GPU_MODE_WINDOW});
  EXPECT_EQ(control.gpu_wait, 2u);
  EXPECT_EQ(control.gpu_repeat, 5u);
}

TEST_F(RelayTest, DrivesGpuTracingByTheClockOfItsOptions) {
  collector_->Start();
  RelayOptions options = Options();
  options.gpu = *ParseGpuSchedule("wait=50ms,warmup=50ms,active=50ms");
  StartKeeper(options);
  FakeSegment segment;
  segment.view().header().ringless_gpu_calls = 1;
  StartTarget(&segment);
  abi::ControlBlock& control = segment.view().control();
  for (auto state : {abi::TracingState::kWarmUp, abi::TracingState::kActive,
                     abi::TracingState::kOff}) {
    EXPECT_TRUE(PollUntil([&] {
      return control.gpu_by_clock == 1 &&
             control.gpu_clock_state == static_cast<uint32_t>(state);
    }));
  }
}

TEST_F(RelayTest, DeliversWhatTheGpuDidAndHowItIsCalled) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  abi::Event device = MakeEvent(abi::EventType::kGpuDevice, 0);
  device.py_stack = segment.AddGpuDevice(segment.AddText("NVIDIA H200"), 0, 132);
  abi::Event kernel = MakeEvent(abi::EventType::kGpuKernel, 0);
  kernel.py_stack = segment.AddKernel(segment.AddText("_Z4gemmPf"));
  kernel.native_stack = segment.AddGpuStream(0, 1, 7);
  abi::Event copy = MakeEvent(abi::EventType::kGpuCopy, 4096);
  copy.native_stack = kernel.native_stack;
  abi::Event call = MakeEvent(abi::EventType::kApiCall, 4711);
  call.py_stack = segment.AddText("cudaLaunchKernel");
  call.api = abi::kRuntimeCallBase + 211;
  abi::Event mark = MakeEvent(abi::EventType::kGpuMark, 0);
  abi::Event step = MakeEvent(abi::EventType::kStep, 12);
  for (const abi::Event& event : {device, kernel, copy, call, mark, step}) {
    ASSERT_TRUE(segment.Commit(0, event));
  }
  EndTarget(target);
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  EXPECT_THAT((got.rings[{1, 0}].types), ::testing::ElementsAre(18, 9, 10, 13, 17, 19));
  EXPECT_EQ((got.kernels[{1, kernel.py_stack}].name()), "gemm(float*)");
  EXPECT_EQ((got.gpu_streams[{1, kernel.native_stack}].stream()), 7u);
  EXPECT_EQ((got.gpu_devices[{1, device.py_stack}].name()), "NVIDIA H200");
  EXPECT_EQ(got.apis[call.api].name(), "cudaLaunchKernel");
}

TEST_F(RelayTest, EveryEventArrivesOnceWhileTheWorkerIsKilledAgainAndAgain) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  constexpr uint32_t kThreads = 4;
  constexpr uint64_t kEvents = 20'000;
  constexpr uint64_t kPatience = 8'192;  // events that a writer is ahead at most
  std::vector<std::thread> writers;
  std::atomic<uint32_t> writing{kThreads};
  for (uint32_t ring = 0; ring < kThreads; ++ring) {
    writers.emplace_back([&, ring] {
      for (uint64_t i = 0; i < kEvents;) {
        abi::RingHeader& header = segment.view().ring(ring);
        // A patient writer: what must arrive is then known exactly.
        if (header.head.load() - header.tail.load() < kPatience) {
          segment.Commit(ring, MakeEvent(abi::EventType::kLaunch, i++));
          if (i % 64 == 0) absl::SleepFor(absl::Milliseconds(1));
        } else {
          absl::SleepFor(absl::Milliseconds(1));
        }
      }
      --writing;
    });
  }
  auto read_by_workers = [&] {
    uint64_t read = 0;
    for (uint32_t ring = 0; ring < kThreads; ++ring) {
      read += segment.view().ring(ring).tail.load();
    }
    return read;
  };
  constexpr uint32_t kLongestMs = 60;
  uint32_t longest_ms = kLongestMs;
  uint64_t read = 0;
  std::mt19937 random(20260);
  int kills = 0;
  while (writing > 0) {
    absl::Time until = absl::Now() + absl::Milliseconds(random() % longest_ms);
    PollUntil([&] { return absl::Now() > until; });
    if (keeper_->worker_pid() > 0) {
      kill(keeper_->worker_pid(), SIGKILL);
      ++kills;
    }
    // A worker that got nowhere is given more time: sanitized, it starts slowly.
    longest_ms =
        read_by_workers() > read ? kLongestMs : std::min(longest_ms * 2, 8000u);
    read = read_by_workers();
  }
  for (std::thread& writer : writers) writer.join();
  EndTarget(target);
  ASSERT_EQ(Finish(), absl::OkStatus());
  EXPECT_GT(kills, 3);
  EXPECT_GT(keeper_->status().worker_restarts, 2u);
  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  for (uint32_t ring = 0; ring < kThreads; ++ring) ExpectExactly(got, 1, ring, kEvents);
  for (const auto& ring : got.counters[1].rings()) EXPECT_EQ(ring.lost_relay(), 0u);
}

TEST_F(RelayTest, ASecondHelloOfTheSameProcessEndsTheImageBefore) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment first;
  FakeSegment second;
  std::atomic<bool> welcome{false};
  // Both from this process, which lives on: as exec without another pid.
  std::thread hello([&] {
    first.Commit(0, MakeEvent(abi::EventType::kLaunch, 0));
    bool one = first.Handshake(root_ + "/run/relay");
    bool two = second.Handshake(root_ + "/run/relay");
    welcome = one && two;
  });
  EXPECT_TRUE(PollUntil([&] { return collector_->collected().ended.count(1) != 0; }));
  hello.join();
  EXPECT_TRUE(welcome);
  EXPECT_EQ(keeper_->status().live_targets, 1u);
  ExpectExactly(collector_->collected(), 1, 0, 1);
  EXPECT_EQ(Finish(), absl::OkStatus()) << "also with a target that lives on";
  EXPECT_EQ(second.view().control().armed, 0u);
}

TEST_F(RelayTest, RefusesWhatIsNoProperTarget) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment good;
  UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), abi::kSegmentSize), 0);
  UniqueFd small(memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(small.get(), 4096), 0);
  fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  FakeSegment headerless;
  headerless.view().header().magic = 1;
  std::atomic<bool> done{false};
  std::vector<int> answers;
  std::thread hello([&] {
    const std::string path = root_ + "/run/relay";
    answers = {SayHello(path, good.memfd(), 1, abi::kVersion),
               SayHello(path, good.memfd(), abi::kSegmentMagic, abi::kVersion + 1),
               SayHello(path, unsealed.get(), abi::kSegmentMagic, abi::kVersion),
               SayHello(path, small.get(), abi::kSegmentMagic, abi::kVersion),
               SayHello(path, headerless.memfd(), abi::kSegmentMagic, abi::kVersion),
               SayHello(path, -1, abi::kSegmentMagic, abi::kVersion),
               SayHello(path, good.memfd(), abi::kSegmentMagic, abi::kVersion)};
    done = true;
  });
  EXPECT_TRUE(PollUntil([&] { return done.load(); }));
  hello.join();
  EXPECT_THAT(answers, ::testing::ElementsAre(0, 0, 0, 0, 0, 0, 1));
  EXPECT_EQ(keeper_->status().refused, 6u);
  EXPECT_EQ(Finish(), absl::OkStatus());
  EXPECT_EQ(collector_->collected().job_end->unrecorded_processes(), 6u);
}

// What would have a reader wait for it, for instance.
TEST_F(RelayTest, TakesATargetThatHandsOverAnotherFileAsItsMemory) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd readable(ends[0]), writable(ends[1]);
  UniqueFd kernel(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  std::atomic<bool> done{false};
  std::vector<int> answers;
  std::thread hello([&] {
    for (int other : {readable.get(), kernel.get()}) {
      answers.push_back(SayHello(root_ + "/run/relay", segment.memfd(),
                                 abi::kSegmentMagic, abi::kVersion, other));
    }
    done = true;
  });
  EXPECT_TRUE(PollUntil([&] { return done.load(); }));
  hello.join();
  EXPECT_THAT(answers, ::testing::ElementsAre(1, 1));
  EXPECT_EQ(Finish(), absl::OkStatus());
}

TEST_F(RelayTest, CountsProcessesThatHaveNoSegmentToGive) {
  collector_->Start();
  StartKeeper(Options());
  std::atomic<bool> done{false};
  std::thread hello([&] {
    SayHello(root_ + "/run/relay", -1, abi::kUnrecordedMagic, abi::kVersion);
    done = true;
  });
  EXPECT_TRUE(PollUntil([&] { return done.load(); }));
  hello.join();
  kill(keeper_->worker_pid(), SIGKILL);  // its successor is told again
  EXPECT_TRUE(PollUntil([&] { return keeper_->status().worker_restarts > 0; }));
  EXPECT_EQ(Finish(), absl::OkStatus());
  EXPECT_EQ(keeper_->status().refused, 0u);
  EXPECT_EQ(collector_->collected().job_end->unrecorded_processes(), 1u);
}

TEST_F(RelayTest, DeliversAfterItsKeeperHasGoneWithoutIt) {
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  CommitMany(&segment, 0, 0, 100);
  EndTarget(target);
  keeper_->JobEnded(7);
  absl::Time start = absl::Now();
  absl::Status waited =
      keeper_->WaitUntilDelivered(absl::Seconds(60), absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(waited)) << waited;
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  keeper_->Leave();
  keeper_.reset();
  collector_->Start();
  absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (!collector_->collected().job_end && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  ASSERT_TRUE(collector_->collected().job_end);
  EXPECT_EQ(collector_->collected().job_end->exit_status(), 7);
  ExpectExactly(collector_->collected(), 1, 0, 100);
}

TEST_F(RelayTest, TheSocketIsForThisUserAlone) {
  collector_->Start();
  StartKeeper(Options());
  struct stat info;
  ASSERT_EQ(stat((root_ + "/run/relay").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((root_ + "/run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(Keeper::Start(Options()).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(RelayTest, GivesACorruptSegmentUpAndServesTheOthers) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment broken;
  FakeSegment sound;
  pid_t first = StartTarget(&broken);
  pid_t second = StartTarget(&sound);
  CommitMany(&broken, 0, 0, 10);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().events_read == 10; }));
  broken.view().header().rings_used = 2;
  broken.view().ring(1).head = 1'000'000;  // more than a ring can hold
  CommitMany(&sound, 0, 0, 100);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().corrupt_segments == 1; }));
  EXPECT_EQ(broken.view().control().armed, 0u);
  EndTarget(first);
  EndTarget(second);
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_TRUE(got.counters[1].corrupt());
  EXPECT_FALSE(got.counters[2].corrupt());
  ExpectExactly(got, 1, 0, 10);
  ExpectExactly(got, 2, 0, 100);
  EXPECT_EQ(keeper_->status().worker_restarts, 0u);
}

TEST_F(RelayTest, NamesTheThreadOfEachEventAlsoAfterARestart) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  segment.Commit(0, MakeEvent(abi::EventType::kThreadStart, 111));
  segment.Commit(0, MakeEvent(abi::EventType::kLaunch, 1));
  ASSERT_TRUE(PollUntil([&] {
    return keeper_->status().batches_spooled > 0 && keeper_->status().events_read == 2;
  }));
  kill(keeper_->worker_pid(), SIGKILL);
  segment.Commit(0, MakeEvent(abi::EventType::kLaunch, 2));
  segment.Commit(0, MakeEvent(abi::EventType::kThreadStart, 222));
  segment.Commit(0, MakeEvent(abi::EventType::kLaunch, 3));
  EndTarget(target);
  ASSERT_EQ(Finish(), absl::OkStatus());
  EXPECT_THAT(collector_->collected().rings[std::make_pair(uint64_t{1}, 0u)].tids,
              ::testing::ElementsAre(111, 111, 111, 222, 222));
}

TEST_F(RelayTest, ThinsATargetThatSpendsMoreThanTheBudget) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  segment.Commit(0, MakeEvent(abi::EventType::kLaunch, 0));
  abi::RingHeader& ring = segment.view().ring(0);
  uint64_t before = MonotonicNs();
  ASSERT_TRUE(PollUntil([&] {
    ring.self_ns = (MonotonicNs() - before) / 4;  // 25 %
    return segment.view().control().thinning.load() >= abi::kThinNativeStacks;
  }));
  EndTarget(target);
  ASSERT_EQ(Finish(), absl::OkStatus());
  EXPECT_GE(collector_->collected().counters[1].thinning(), 2u);
}

}  // namespace
}  // namespace lull::relay
