// The answers of `lull ps` for processes that are always the same.
#include "cli/render/ps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/golden.h"

namespace lull {
namespace {

using attach::Examination;
using attach::Process;
using attach::Role;
using testing::ExpectGolden;

Examination Seen(pid_t pid, const std::vector<std::string>& arguments) {
  Examination seen;
  Process& process = seen.process;
  process.pid = pid;
  process.exists = process.readable = process.same_root = true;
  process.name = "python3.11";
  process.arguments = arguments;
  process.state = 'S';
  process.parent = 4000;
  process.users = {1000, 1000, 1000};
  process.user = "alice";
  process.start_ticks = 123456;
  process.start_realtime_ns = 1'714'566'600'250'000'000;
  process.threads = 12;
  process.executable = "/usr/bin/python3.11";
  process.program = {true, 64, 62, "/lib64/ld-linux-x86-64.so.2"};
  process.files.glibc = "/lib/x86_64-linux-gnu/libc.so.6";
  process.files.python_version = "3.11";
  process.glibc_version = "2.36";
  process.is_python = true;
  process.pid_namespace = process.mount_namespace = process.user_namespace =
      process.network_namespace = attach::Namespace::kOurs;
  return seen;
}

Examination Rank(pid_t pid, int rank) {
  Examination seen = Seen(pid, {"python", "-u", "train.py", "--epochs", "3"});
  seen.process.parent = 4312;
  seen.process.rank = {rank, rank, 2};
  seen.process.files.cuda_runtime = seen.process.files.cuda_driver = true;
  seen.process.gpu_devices = {rank};
  return seen;
}

Examination Launcher() {
  Examination seen = Seen(4312, {"python", "/usr/bin/torchrun", "--nproc-per-node", "2",
                                 "train.py", "--epochs", "3"});
  seen.role = Role::kLauncher;
  return seen;
}

Examination OfBob(pid_t pid) {
  Examination seen = Seen(pid, {"python3", "serve.py\033[31m"});
  seen.process.user = "bob";
  seen.process.readable = false;
  seen.process.files = {};
  seen.process.program = {};
  seen.process.executable = seen.process.glibc_version = "";
  seen.process.pid_namespace = seen.process.mount_namespace =
      seen.process.user_namespace = seen.process.network_namespace =
          attach::Namespace::kUnknown;
  seen.obstacles.push_back({"other_user", "user bob's",
                            "It belongs to bob, and lull runs as alice.",
                            "Run lull as that user (`sudo -u bob lull attach " +
                                std::to_string(pid) + "`) or as root."});
  return seen;
}

Examination Stopped() {
  Examination seen = Seen(6001, {"./train", std::string(120, 'x')});
  seen.process.is_python = false;
  seen.process.executable = "/home/alice/train";
  seen.process.files.python_version = "";
  seen.process.files.cuda_runtime = true;
  seen.process.state = 'T';
  seen.process.in_inner_pid_namespace = true;
  seen.obstacles.push_back({"stopped", "stopped", "It is stopped.",
                            "Let it go on with `fg` or `kill -CONT 6001`."});
  seen.notes.push_back({"other_pid_namespace", "other PIDs",
                        "It lives in a PID namespace of its own.", ""});
  return seen;
}

std::vector<Examination> All() {
  return {Launcher(),  Rank(4313, 0), Rank(4314, 1),
          OfBob(5001), OfBob(5002),   Stopped()};
}

TEST(PsText, HasALineForEachProcessAndEachKindOfRefusalOnce) {
  ExpectGolden("ps", PsText(All(), 17, 100));
}

TEST(PsText, SaysSoWhenThereIsNothingToWatch) {
  ExpectGolden("ps_none", PsText({}, 1, 100));
}

TEST(PsText, FitsTheTerminalAndCutsNothingElsewhere) {
  for (size_t columns : {90u, 120u, 160u}) {
    std::string rows = PsText({Stopped(), Launcher()}, 0, columns);
    rows.resize(rows.find("\nno: "));
    for (size_t at = 0; at < rows.size();) {
      size_t end = std::min(rows.find('\n', at), rows.size());
      EXPECT_LE(end - at, columns) << rows.substr(at, end - at);
      at = end + 1;
    }
  }
  EXPECT_NE(PsText({Stopped()}, 0, 0).find(std::string(120, 'x')), std::string::npos);
}

TEST(ProcessText, TellsAllOfARank) {
  ExpectGolden("ps_rank", ProcessText(Rank(4313, 0), {4313}));
}

TEST(ProcessText, NamesTheRanksOfALauncher) {
  ExpectGolden("ps_launcher", ProcessText(Launcher(), {4313, 4314}));
}

TEST(ProcessText, NamesEveryObstacleAndWhatToDo) {
  ExpectGolden("ps_refused", ProcessText(Stopped(), {6001}));
}

TEST(ProcessText, LeavesOutWhatMayNotBeLookedAt) {
  std::string text = ProcessText(OfBob(5001), {});
  EXPECT_EQ(text.find("executable"), std::string::npos);
  EXPECT_EQ(text.find("GPU"), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST(PsJson, HasTheSameKeysForEachProcess) {
  ExpectGolden("ps_json", JsonText(PsJson({Rank(4313, 0), OfBob(5001)})));
}

TEST(PsJson, OfAProcessThatIsNotThereHasTheReasonAlone) {
  Examination gone;
  gone.process.pid = 9;
  gone.obstacles.push_back({"not_found", "gone", "There is none.", "Look."});
  Json json = ProcessJson(gone, {});
  EXPECT_EQ(json["process"]["pid"], 9);
  EXPECT_EQ(json["process"]["can_attach"], false);
  EXPECT_EQ(json["process"]["obstacles"][0]["id"], "not_found");
  EXPECT_FALSE(json["process"].contains("user"));
  EXPECT_TRUE(json["workers"].empty());
}

}  // namespace
}  // namespace lull
