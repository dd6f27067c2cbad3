// liblull.so in real processes, with a relay of our own at the other end.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/event_views.h"
#include "preload/abi/hook_list.h"
#include "tests/preload/support/fake_relay.h"

namespace lull {
namespace {

using Environment = std::map<std::string, std::string>;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/lull-test-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Outcome {
  pid_t pid;
  int status;  // as waitpid() has it
  std::string output;
};

// Runs a program with stdout and stderr in one file.
Outcome run(std::vector<std::string> words, const Environment& environment) {
  Folder folder;
  std::string output = folder.path() / "output";
  pid_t pid = fork();
  if (pid == 0) {
    int fd = open(output.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    for (const auto& [name, value] : environment)
      setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return {pid, status, contents(output)};
}

Environment under(const FakeRelay& relay) {
  return {{"LD_PRELOAD", LULL_SHIM}, {"LULL_SOCKET", relay.path()}};
}

struct Waits {
  std::vector<abi::Event> events;
  std::set<uint64_t> threads;
  uint64_t short_waits = 0;
  uint64_t lost = 0;
};

Waits waits_of(const FakeRelay::Target& target) {
  abi::SegmentView view(target.segment);
  Waits waits;
  for (uint32_t i = 0; i < view.header().rings_used; ++i) {
    const abi::RingHeader& ring = view.ring(i);
    waits.short_waits += ring.short_waits;
    waits.lost += ring.lost;
    for (uint64_t at = 0; at < ring.head; ++at) {
      const abi::Event& event = view.slot(i, at);
      if (event.type == abi::EventType::kThreadStart) {
        waits.threads.insert(Number(ThreadStartView{event}.thread()));
      }
      if (event.type == abi::EventType::kHostWait) waits.events.push_back(event);
    }
  }
  return waits;
}

// The wait that lasted longest.
abi::Event longest(const Waits& waits) {
  if (waits.events.empty()) return {};
  return *std::max_element(
      waits.events.begin(), waits.events.end(),
      [](const auto& a, const auto& b) { return a.duration_ns < b.duration_ns; });
}

TEST(Shim, SeesASleepOfThePythonMainThreadWithItsStack) {
  FakeRelay relay;
  Outcome outcome = run(
      {"python3", "-c", "import time; time.sleep(0.2); print('done')"}, under(relay));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "done\n");
  Waits waits = waits_of(relay.wait_for_target());
  abi::Event sleep = longest(waits);
  EXPECT_THAT(
      abi::hook_name(sleep.api),
      testing::AnyOf(testing::StrEq("clock_nanosleep"), testing::StrEq("select")));
  EXPECT_GE(sleep.duration_ns, 200'000'000u);
  EXPECT_NE(sleep.py_stack, 0u);
  EXPECT_NE(sleep.flags & abi::kFlagFromPython, 0);
  EXPECT_EQ(sleep.flags & abi::kFlagFailed, 0);
  EXPECT_GT(waits.short_waits, 0u);  // the reads of Python's own start
  EXPECT_EQ(waits.lost, 0u);
}

TEST(Shim, SeesEveryFunctionThatWaitsAndChangesNoneOfTheirAnswers) {
  FakeRelay relay;
  std::vector<std::string> command = {"python3", LULL_PUPPETS "/every_wait.py"};
  Outcome without = run(command, {});
  Outcome with = run(command, under(relay));
  ASSERT_EQ(without.status, 0) << without.output;
  EXPECT_EQ(with.status, 0);
  EXPECT_EQ(with.output, without.output);
  std::set<uint16_t> seen;
  for (const abi::Event& event : waits_of(relay.wait_for_target()).events) {
    if (event.duration_ns >= 50'000'000u) seen.insert(event.api);
  }
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event)      \
  if (abi::hook_family(id) == abi::HookFamily::k_wait && dlsym(RTLD_NEXT, #name)) { \
    EXPECT_EQ(seen.count(id), 1u) << #name;                                         \
  }
  LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
}

TEST(Shim, WatchesNoThreadThatLaunchesNothing) {
  FakeRelay relay;
  Outcome outcome = run({"python3", "-c",
                         "import threading, time\n"
                         "t = threading.Thread(target=time.sleep, args=(0.1,))\n"
                         "t.start(); t.join()"},
                        under(relay));
  EXPECT_EQ(outcome.status, 0);
  Waits waits = waits_of(relay.wait_for_target());
  EXPECT_THAT(waits.threads, testing::ElementsAre(static_cast<uint64_t>(outcome.pid)));
  EXPECT_GE(longest(waits).duration_ns, 50'000'000u);  // the join
}

TEST(Shim, LeavesLaunchersForkChildrenAndOtherProgramsAlone) {
  FakeRelay relay;
  Folder folder;
  std::ofstream(folder.path() / "torchrun") << "print('launched')";
  EXPECT_EQ(run({"python3", folder.path() / "torchrun"}, under(relay)).output,
            "launched\n");
  EXPECT_EQ(run({"sh", "-c", "echo hello | cat"}, under(relay)).output, "hello\n");
  EXPECT_TRUE(relay.targets().empty());
  Outcome forks = run({"python3", "-c",
                       "import os, time\n"
                       "if os.fork() == 0: time.sleep(0.05); os._exit(7)\n"
                       "print(os.wait()[1] >> 8)"},
                      under(relay));
  EXPECT_EQ(forks.output, "7\n");
  ASSERT_EQ(relay.targets().size(), 1u);
  EXPECT_EQ(relay.targets()[0].pid, forks.pid);
}

TEST(Shim, SaysHelloAgainAfterAnExec) {
  FakeRelay relay;
  Outcome outcome =
      run({"python3", "-c",
           "import os; os.execvp('python3', ['python3', '-c', 'print(1)'])"},
          under(relay));
  EXPECT_EQ(outcome.output, "1\n");
  ASSERT_EQ(relay.targets().size(), 2u);
  EXPECT_EQ(relay.targets()[0].pid, outcome.pid);
  EXPECT_EQ(relay.targets()[1].pid, outcome.pid);
}

TEST(Shim, LeavesNoSocketAndNoSegmentOpen) {
  FakeRelay relay;
  Outcome outcome =
      run({"python3", "-c",
           "import os\n"
           "links = [os.readlink('/proc/self/fd/' + f) for f in "
           "os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + "
           "f)]\n"
           "print([l for l in links if 'memfd' in l or 'socket' in l])"},
          under(relay));
  EXPECT_EQ(outcome.output, "[]\n");
  EXPECT_EQ(relay.targets().size(), 1u);
}

TEST(Shim, StaysOutWhenItIsToldToOrCannotReachItsRelay) {
  FakeRelay relay;
  Environment disabled = under(relay);
  disabled["LULL_DISABLE"] = "1";
  EXPECT_EQ(run({"python3", "-c", "print(1)"}, disabled).output, "1\n");
  EXPECT_TRUE(relay.targets().empty());
  Environment nobody = {{"LD_PRELOAD", LULL_SHIM},
                        {"LULL_SOCKET", "/nonexistent/socket"}};
  EXPECT_EQ(run({"python3", "-c", "print(1)"}, nobody).output, "1\n");
}

// An installation whose `lull` writes down how it was started and then makes the
// fake relay reachable under the path it was given.
class BarePreload : public testing::Test {
 protected:
  BarePreload() {
    std::filesystem::create_directories(folder_.path() / "lib/lull");
    std::filesystem::create_directories(folder_.path() / "bin");
    std::filesystem::copy(LULL_SHIM, folder_.path() / "lib/lull/liblull.so");
    std::filesystem::path program = folder_.path() / "bin/lull";
    std::ofstream(program)
        << "#!/bin/sh\n"
           "{ echo \"$@\"; echo \"preload=$LD_PRELOAD\"\n"
           "  for fd in 0 1 2 3 4 5; do readlink /proc/$$/fd/$fd; done\n"
           "  echo session=`cut -d' ' -f6 /proc/$$/stat`; pwd; } >> $LULL_NOTES\n"
           "sleep 0.1; ln -s $LULL_FAKE_RELAY \"$3\"\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  Environment environment() const {
    return {{"LD_PRELOAD", folder_.path() / "lib/lull/liblull.so"},
            {"LULL_RUNTIME_DIR", folder_.path()},
            {"LULL_NOTES", folder_.path() / "notes"},
            {"LULL_FAKE_RELAY", relay_.path()}};
  }

  FakeRelay relay_;
  Folder folder_;
};

constexpr char kLooksForChildren[] =
    "import os, signal, time\n"
    "signal.signal(signal.SIGCHLD, lambda *_: print('SIGCHLD'))\n"
    "time.sleep(0.3)\n"
    "try: print(os.waitpid(-1, os.WNOHANG | 0x40000000))\n"  // __WALL
    "except ChildProcessError: print('no child')\n"
    "print(sorted(os.listdir('/proc/self/task')) == [str(os.getpid())])";

TEST_F(BarePreload, StartsARelayThatTheTargetNeverSees) {
  Outcome outcome = run({"python3", "-c", kLooksForChildren}, environment());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "no child\nTrue\n");
  ASSERT_EQ(relay_.targets().size(), 1u);
  EXPECT_EQ(relay_.targets()[0].pid, outcome.pid);
  std::string socket = folder_.path() / ("auto-" + std::to_string(getsid(0)) + ".sock");
  std::string notes = contents(folder_.path() / "notes");
  EXPECT_THAT(notes, testing::StartsWith("relay --socket " + socket +
                                         "\npreload=\n/dev/null\n"));
  EXPECT_THAT(notes, testing::Not(testing::HasSubstr("memfd")));
  EXPECT_THAT(notes, testing::Not(testing::HasSubstr("output")));
  EXPECT_THAT(notes, testing::HasSubstr("session="));
  EXPECT_THAT(
      notes,
      testing::Not(testing::HasSubstr("session=" + std::to_string(getsid(0)) + "\n")));
  EXPECT_THAT(notes, testing::EndsWith("\n/\n"));
}

TEST_F(BarePreload, FindsTheRelayOfTheSessionThatRunsAlready) {
  ASSERT_EQ(run({"python3", "-c", "pass"}, environment()).status, 0);
  ASSERT_EQ(run({"python3", "-c", "pass"}, environment()).status, 0);
  EXPECT_EQ(relay_.targets().size(), 2u);
  std::string notes = contents(folder_.path() / "notes");
  EXPECT_EQ(notes.find("relay --socket"), notes.rfind("relay --socket"));
}

TEST_F(BarePreload, RunsTheProgramAllTheSameWithoutLull) {
  std::filesystem::remove(folder_.path() / "bin/lull");
  Outcome outcome = run({"python3", "-c", kLooksForChildren}, environment());
  EXPECT_EQ(outcome.output, "no child\nTrue\n");
  EXPECT_TRUE(relay_.targets().empty());
}

}  // namespace
}  // namespace lull
