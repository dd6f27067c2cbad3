// What cannot be done is said, and leaves the victim untouched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "absl/time/clock.h"
#include "tests/daemon/attach/inject/victim_process.h"

namespace lull::inject {
namespace {

using testing::HasSubstr;

absl::Status StatusOf(const Request& request) { return Inject(request).status(); }

void ExpectStatus(const absl::Status& status, absl::StatusCode code, const char* text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(Refusals, ThereIsNoSuchProcess) {
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  ExpectStatus(StatusOf(ProbeRequest(pid)), absl::StatusCode::kNotFound, "no process");
}

TEST(Refusals, AStoppedProcessIsNotTouched) {
  VictimProcess victim("compute", 2);
  kill(victim.pid(), SIGSTOP);
  absl::SleepFor(absl::Milliseconds(50));
  ExpectStatus(StatusOf(ProbeRequest(victim.pid())),
               absl::StatusCode::kFailedPrecondition, "job control");
  kill(victim.pid(), SIGCONT);
  EXPECT_EQ(victim.End(), 0);
}

TEST(Refusals, AStaticProgramHasNoLoader) {
  VictimProcess victim({Built("inject_static_victim")});
  ExpectStatus(StatusOf(ProbeRequest(victim.pid())),
               absl::StatusCode::kFailedPrecondition, "linked statically");
  EXPECT_TRUE(victim.IsAlive());
}

TEST(Refusals, AThreadWithASmallStackIsNotUsed) {
  VictimProcess victim("small_stack", 1);
  ExpectStatus(StatusOf(ProbeRequest(victim.pid())),
               absl::StatusCode::kFailedPrecondition, "256 KiB");
  EXPECT_EQ(victim.End(), 0);
}

TEST(Refusals, ALibraryThatCannotBeLoadedIsSaidAndTheVictimGoesOn) {
  VictimProcess victim("registers", 1);
  Request request = ProbeRequest(victim.pid());
  request.library = request.identity = Built("libinject_broken.so");
  ExpectStatus(StatusOf(request), absl::StatusCode::kInternal, "could not load");
  request = ProbeRequest(victim.pid());
  request.library = "/nowhere/libinject_probe.so";
  absl::Status status = StatusOf(request);
  ExpectStatus(status, absl::StatusCode::kInternal, "No such file");
  EXPECT_EQ(victim.End(), 0);
}

// dlopen hands out what it knows by that path; where a function is in the new file,
// there is other code in the old one.
TEST(Refusals, ALibraryThatWasReplacedIsNotCalled) {
  const std::string path = testing::TempDir() + "/libinject_replaced.so";
  const std::string newer = path + ".new";
  std::filesystem::copy_file(Built("libinject_probe.so"), path,
                             std::filesystem::copy_options::overwrite_existing);
  VictimProcess victim("registers", 1);
  Request request = ProbeRequest(victim.pid());
  request.library = request.identity = path;
  ASSERT_TRUE(Inject(request).ok());
  std::filesystem::copy_file(Built("libinject_named_2.so"), newer,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(newer, path);
  ExpectStatus(StatusOf(request), absl::StatusCode::kFailedPrecondition, "another");
  request.load = false;
  auto absent = Inject(request);
  ASSERT_TRUE(absent.ok()) << absent.status();
  EXPECT_TRUE(absent->absent);
  request.identity = Built("libinject_probe.so");
  auto outcome = Inject(request);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->result >> 32, 2) << "none was made in between";
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0);
  std::filesystem::remove(path);
}

// Of a file that was replaced root alone can see what is mapped. What dlopen knows by
// its path is called if it has the same code.
bool SeesNothingOfReplacedFiles() {
  for (const int capability : {CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE}) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return false;
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  for (const int capability : {CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE}) {
    const uint32_t others = ~(1u << capability % 32);
    data[capability / 32].permitted &= others;
    data[capability / 32].effective &= others;
  }
  return syscall(SYS_capset, &header, data) == 0;
}

// The number of the first thing that is not as it should be.
int CallWhatCannotBeRead(const std::string& path) {
  const auto put = [&path](const char* library) {
    std::filesystem::copy_file(Built(library), path + ".new",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(path + ".new", path);
  };
  if (!SeesNothingOfReplacedFiles()) return 1;
  put("libinject_probe.so");
  VictimProcess victim("registers", 1);
  Request request = ProbeRequest(victim.pid());
  request.library = request.identity = path;
  if (!Inject(request).ok()) return 2;
  put("libinject_probe.so");  // again
  request.load = false;
  auto outcome = Inject(request);
  if (!outcome.ok() || outcome->absent || outcome->result >> 32 != 2) return 3;
  put("libinject_named_2.so");
  const absl::Status another = StatusOf(request);
  if (another.code() != absl::StatusCode::kFailedPrecondition) return 4;
  if (another.message().find("another") == another.message().npos) return 5;
  return victim.End() == 0 && victim.page().errors == 0 ? 0 : 6;
}

TEST(Refusals, ALibraryThatCannotBeReadAnyMoreIsCalledIfItIsTheSame) {
  const std::string path = testing::TempDir() + "/libinject_unreadable.so";
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) _exit(CallWhatCannotBeRead(path));
  int status = -1;
  waitpid(pid, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 1) GTEST_SKIP() << "no capability to give away";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::filesystem::remove(path);
}

TEST(Refusals, WhatIsNotToBeLoadedStopsNobody) {
  VictimProcess victim("compute", 4);
  Request request = ProbeRequest(victim.pid());
  request.load = false;
  Stops stops;
  auto outcome = Inject(request, &stops);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->absent);
  EXPECT_EQ(std::max(stops.running, stops.sleeping).time, absl::ZeroDuration());
  request.load = true;
  ASSERT_TRUE(Inject(request).ok());
  request.load = false;
  outcome = Inject(request);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->result >> 32, 2);
  EXPECT_EQ(victim.End(), 0);
}

// Its waits end with EINTR after a stop, if nobody has them begun again.
TEST(Refusals, AnotherVersionIsSaidAndAWaitGoesOn) {
  for (const char* kind : {"endless_epoll", "semop"}) {
    SCOPED_TRACE(kind);
    VictimProcess victim(kind, 1);
    Request request = ProbeRequest(victim.pid());
    request.library = request.identity = Built("libinject_named_1.so");
    ASSERT_TRUE(Inject(request).ok());
    request.library = request.identity = Built("libinject_named_2.so");
    request.function = "probe_new";
    for (int i = 0; i < 5; ++i) {
      Stops stops;
      ExpectStatus(Inject(request, &stops).status(),
                   absl::StatusCode::kFailedPrecondition, "without probe_new");
      EXPECT_GT(stops.sleeping.time, absl::ZeroDuration());
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_EQ(victim.End(), 0);
    EXPECT_EQ(victim.page().errors, 0) << "detail " << victim.page().detail;
  }
}

TEST(Refusals, AFunctionThatIsNotExportedIsKnownBeforehand) {
  VictimProcess victim("registers", 1);
  Request request = ProbeRequest(victim.pid());
  request.function = "nobody";
  ExpectStatus(StatusOf(request), absl::StatusCode::kInvalidArgument, "nobody");
  EXPECT_EQ(victim.End(), 0);
}

TEST(Refusals, AFunctionThatSetsNoResultIsToldApart) {
  VictimProcess victim("registers", 1);
  Request request = ProbeRequest(victim.pid());
  request.function = "probe_silent";
  auto outcome = Inject(request);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->result, kResultNotSet);
  EXPECT_EQ(victim.End(), 0);
}

TEST(Refusals, ACrashInTheCallIsTakenBack) {
  VictimProcess victim("registers", 1);
  Request request = ProbeRequest(victim.pid());
  request.function = "probe_crash";
  ExpectStatus(StatusOf(request), absl::StatusCode::kInternal, "Segmentation fault");
  EXPECT_EQ(victim.End(), 0);
  EXPECT_EQ(victim.page().errors, 0);
}

TEST(Refusals, AnotherTracerKeepsUsOut) {
  VictimProcess victim("compute", 1);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, victim.pid(), nullptr, nullptr), 0);
  ExpectStatus(StatusOf(ProbeRequest(victim.pid())),
               absl::StatusCode::kFailedPrecondition, "traced");
  ptrace(PTRACE_INTERRUPT, victim.pid(), nullptr, nullptr);
  waitpid(victim.pid(), nullptr, __WALL);
  ptrace(PTRACE_DETACH, victim.pid(), nullptr, nullptr);
  EXPECT_EQ(victim.End(), 0);
}

TEST(Refusals, CancelBeforeTheCallDoesNothing) {
  VictimProcess victim("compute", 1);
  std::atomic<bool> cancel = true;
  EXPECT_EQ(Injector().Call(ProbeRequest(victim.pid()), cancel).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(victim.End(), 0);
}

TEST(Refusals, PatienceEndsWithAReason) {
  VictimProcess victim("dlopen_only", 1);
  Request request = ProbeRequest(victim.pid());
  request.patience = absl::ZeroDuration();
  absl::Time begin = absl::Now();
  auto outcome = Inject(request);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(2));
  if (!outcome.ok()) {  // the first look may have been lucky
    ExpectStatus(outcome.status(), absl::StatusCode::kDeadlineExceeded, "safe place");
  }
  EXPECT_EQ(victim.End(), 0);
}

}  // namespace
}  // namespace lull::inject
