// Addresses, environments, places and command lines: what the CLI decides before
// it talks to anyone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/base/environment.h"
#include "cli/client/collector_address.h"
#include "cli/client/places.h"
#include "cli/commands/command_line.h"
#include "cli/commands/query_options.h"
#include "cli/job/job_info.h"

namespace lull {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

constexpr char kHere[] = "127.0.0.1:1";

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "lull-client-" + std::to_string(getpid());
    std::filesystem::create_directory(folder_);
    for (const char* name : {"LULL_COLLECTOR", "LULL_TOKEN_FILE", "LULL_TLS_CA"}) {
      unsetenv(name);
    }
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    for (const char* name : {"LULL_COLLECTOR", "LULL_RUNTIME_DIR", "LD_PRELOAD",
                             "LULL_SOCKET", "XDG_DATA_HOME", "LULL_TOKEN_FILE"}) {
      unsetenv(name);
    }
  }
  std::string WriteFile(const std::string& name, const std::string& text, mode_t mode) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  std::string folder_;
};

TEST_F(ClientTest, UsesThePrivateCollectorOfTheRuntimeDirectoryByDefault) {
  auto address = ResolveCollector({}, "/run/user/1/lull");
  ASSERT_TRUE(address.ok());
  EXPECT_TRUE(address->is_private);
  EXPECT_EQ(address->target, "unix:/run/user/1/lull/collector.sock");
}

TEST_F(ClientTest, PrefersTheFlagToTheVariableToThePrivateCollector) {
  setenv("LULL_COLLECTOR", "127.0.0.1:1", 1);
  EXPECT_EQ(ResolveCollector({}, "/run")->target, "127.0.0.1:1");
  EXPECT_EQ(ResolveCollector({"127.0.0.2:2", "", ""}, "/run")->target, "127.0.0.2:2");
}

TEST_F(ClientTest, RefusesWhatIsNoAddress) {
  for (const char* text :
       {"host", "host:", ":1", "host:0", "host:65536", "host:a", "unix:x"}) {
    auto address = ResolveCollector({text, "", ""}, "/run");
    EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
  }
  EXPECT_TRUE(ResolveCollector({"[::1]:4317", "", ""}, "/run").ok());
}

TEST_F(ClientTest, ReadsATokenThatOnlyItsOwnerCanRead) {
  std::string good = WriteFile("good", "  secret\n", 0600);
  EXPECT_EQ(ResolveCollector({kHere, good, ""}, "/run")->tokens.read, "secret");
  std::string open = WriteFile("open", "secret", 0640);
  EXPECT_THAT(Message(ResolveCollector({kHere, open, ""}, "/run").status()),
              HasSubstr("chmod 600"));
  std::string empty = WriteFile("empty", "\n", 0600);
  EXPECT_TRUE(
      absl::IsInvalidArgument(ResolveCollector({kHere, empty, ""}, "/run").status()));
  EXPECT_TRUE(absl::IsNotFound(
      ResolveCollector({kHere, folder_ + "/none", ""}, "/run").status()));
}

TEST_F(ClientTest, FindsTheTokenFileInTheEnvironment) {
  std::string mine = WriteFile("mine", "write w\n", 0600);
  std::string other = WriteFile("other", "write o\nread r\n", 0600);
  setenv("LULL_TOKEN_FILE", mine.c_str(), 1);
  EXPECT_EQ(ResolveCollector({kHere, "", ""}, "/run")->tokens.write, "w");
  EXPECT_EQ(ResolveCollector({kHere, other, ""}, "/run")->tokens.write, "o");
  EXPECT_TRUE(ResolveCollector({}, "/run").ok());  // the private one wants none
}

TEST_F(ClientTest, NeedsAWriteTokenToDeliverWhereThereAreTokens) {
  std::string reads = WriteFile("reads", "read r\n", 0600);
  auto address = ResolveCollector({kHere, reads, ""}, "/run");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_THAT(Message(ForWriting(*address).status()), HasSubstr("no write token"));
  EXPECT_EQ(ForWriting(*ResolveCollector({kHere, "", ""}, "/run"))->token, "");
}

TEST_F(ClientTest, SendsNothingAcrossANetworkInPlainTextUnlessTold) {
  for (const char* far : {"192.0.2.1:1", "[2001:db8::1]:1", "0.0.0.0:1",
                          "127.0.0.1.invalid:1", "localhost.invalid:1"}) {
    EXPECT_THAT(Message(ResolveCollector({far, "", ""}, "/run").status()),
                HasSubstr("--insecure-plain-tcp"))
        << far;
    EXPECT_EQ(ResolveCollector({far, "", "", true}, "/run")->target, far);
    std::string ca = WriteFile("ca.pem", "x", 0600);
    EXPECT_EQ(ResolveCollector({far, "", ca}, "/run")->target, far);
  }
  // By number, for a name may mean something else a moment later.
  EXPECT_THAT(ResolveCollector({"localhost:7", "", ""}, "/run")->target,
              ::testing::AnyOf("127.0.0.1:7", "[::1]:7"));
}

TEST_F(ClientTest, RefusesATokenForThePrivateCollector) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(ResolveCollector({"", "/t", ""}, "/run").status()));
}

TEST_F(ClientTest, PutsTheShimInFrontOfOtherPreloadsOnce) {
  setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so /old/liblull.so", 1);
  auto environment = EnvironmentWithShim("/new/liblull.so", "/run/s");
  EXPECT_THAT(environment,
              Contains("LD_PRELOAD=/new/liblull.so:/usr/lib/libjemalloc.so"));
  EXPECT_THAT(environment, Contains("LULL_SOCKET=/run/s"));
}

TEST_F(ClientTest, ChangesNothingElseInTheEnvironment) {
  std::vector<std::string> before;
  for (char** variable = environ; *variable != nullptr; ++variable)
    before.push_back(*variable);
  auto with = EnvironmentWithShim("/new/liblull.so", "/run/s");
  ASSERT_EQ(with.size(), before.size() + 3);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), with.begin()));
}

TEST_F(ClientTest, TellsTheShimThatNoSamplesAreWanted) {
  setenv("LULL_SAMPLES", "0", 1);  // of a lull around us
  EXPECT_THAT(EnvironmentWithShim("/new/liblull.so", "/run/s"),
              Each(Not(StartsWith("LULL_SAMPLES="))));
  unsetenv("LULL_SAMPLES");
  EXPECT_THAT(EnvironmentWithShim("/new/liblull.so", "/run/s", "", /*samples=*/false),
              Contains("LULL_SAMPLES=0"));
}

TEST_F(ClientTest, AsksNvtxForItsRanges) {
  unsetenv("NVTX_INJECTION64_PATH");
  auto environment = EnvironmentWithShim("/new/liblull.so", "/run/s", "train step");
  EXPECT_THAT(environment, Contains("LULL_STEP_RANGE=train step"));
  EXPECT_THAT(environment, Contains("NVTX_INJECTION64_PATH=/new/liblull.so"));
  EXPECT_THAT(EnvironmentWithShim("/new/liblull.so", "/run/s"),
              Contains("NVTX_INJECTION64_PATH=/new/liblull.so"));
  EXPECT_THAT(EnvironmentWithShim("/new/liblull.so", "/run/s"),
              Each(Not(StartsWith("LULL_STEP_RANGE="))));
}

TEST_F(ClientTest, TakesNvtxOverFromALullAroundIt) {
  setenv("NVTX_INJECTION64_PATH", "/old/liblull.so", 1);
  auto environment = EnvironmentWithShim("/new/liblull.so", "/run/s");
  EXPECT_THAT(environment, Contains("NVTX_INJECTION64_PATH=/new/liblull.so"));
  EXPECT_THAT(environment, Not(Contains("NVTX_INJECTION64_PATH=/old/liblull.so")));
  EXPECT_THAT(EnvironmentWithoutShim(),
              Each(Not(StartsWith("NVTX_INJECTION64_PATH="))));
  unsetenv("NVTX_INJECTION64_PATH");
}

TEST_F(ClientTest, LeavesNvtxToTheToolThatHasIt) {
  setenv("NVTX_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so", 1);
  auto environment = EnvironmentWithShim("/new/liblull.so", "/run/s", "step");
  EXPECT_THAT(environment,
              Contains("NVTX_INJECTION64_PATH=/opt/nsys/libToolsInjection64.so"));
  EXPECT_THAT(environment, Not(Contains("NVTX_INJECTION64_PATH=/new/liblull.so")));
  unsetenv("NVTX_INJECTION64_PATH");
}

TEST_F(ClientTest, KeepsTheShimOutOfItsOwnProcesses) {
  setenv("LD_PRELOAD", "/x/liblull.so:/usr/lib/libtcmalloc.so", 1);
  setenv("LULL_SOCKET", "/run/s", 1);
  auto environment = EnvironmentWithoutShim();
  EXPECT_THAT(environment, Contains("LD_PRELOAD=/usr/lib/libtcmalloc.so"));
  EXPECT_THAT(environment, Each(Not(StartsWith("LULL_SOCKET="))));
}

TEST_F(ClientTest, RefusesARuntimeDirectoryThatOthersCanWriteTo) {
  setenv("LULL_RUNTIME_DIR", folder_.c_str(), 1);
  chmod(folder_.c_str(), 0777);
  EXPECT_THAT(Message(PrepareRuntimeDirectory().status()),
              AllOf(HasSubstr(folder_), HasSubstr("LULL_RUNTIME_DIR")));
  chmod(folder_.c_str(), 0700);
  EXPECT_EQ(*PrepareRuntimeDirectory(), folder_);
}

TEST_F(ClientTest, RefusesARuntimeDirectoryTooDeepForASocket) {
  std::string deep = folder_ + "/" + std::string(90, 'd');
  setenv("LULL_RUNTIME_DIR", deep.c_str(), 1);
  EXPECT_THAT(Message(PrepareRuntimeDirectory().status()), HasSubstr("too long"));
}

TEST_F(ClientTest, KeepsTheStoreInTheDataDirectory) {
  setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  EXPECT_EQ(DatabasePath(), folder_ + "/lull/lull.db");
  EXPECT_TRUE(PrepareDataDirectory().ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/lull"));
}

CommandLine Split(std::vector<std::string> words) {
  std::vector<char*> argv = Pointers(words);
  return SplitCommandLine(static_cast<int>(words.size()), argv.data());
}

TEST(CommandLine, GivesTheJobWhatFollowsTheFirstSeparator) {
  CommandLine line = Split({"lull", "run", "--name", "x", "--", "a", "--", "--name"});
  EXPECT_THAT(line.own, ElementsAre("x", "--name", "run"));
  EXPECT_THAT(JobCommand(line, {}), ElementsAre("a", "--", "--name"));
}

TEST(CommandLine, LeavesASeparatorToTheCommandThatBeganWithoutOne) {
  CommandLine line = Split({"lull", "run", "torchrun", "--", "x"});
  EXPECT_THAT(JobCommand(line, {"torchrun"}), ElementsAre("torchrun", "--", "x"));
}

TEST(CommandLine, SplitsForRunAlone) {
  CommandLine line = Split({"lull", "syncs", "--", "x"});
  EXPECT_FALSE(line.separator);
  EXPECT_THAT(line.own, ElementsAre("x", "--", "syncs"));
}

TEST(QueryOptions, ReadTimesWithUnits) {
  EXPECT_EQ(*ParseTime("90"), 90'000'000'000u);
  EXPECT_EQ(*ParseTime("90s"), 90'000'000'000u);
  EXPECT_EQ(*ParseTime("2m"), 120'000'000'000u);
  EXPECT_EQ(*ParseTime("1.5h"), 5'400'000'000'000u);
  EXPECT_EQ(*ParseTime("7d"), 604'800'000'000'000u);
  EXPECT_EQ(*ParseTime("250ms"), 250'000'000u);
}

TEST(QueryOptions, RefuseWhatIsNoTime) {
  for (const char* text : {"", "s", "d", "-1s", "1w", "nan", "inf", "1e30h", "367d", "1 2"}) {
    EXPECT_FALSE(ParseTime(text).ok()) << text;
  }
}

TEST(QueryOptions, NameTheOptionThatIsWrong) {
  QueryOptions options;
  options.since = "soon";
  EXPECT_THAT(Message(MakeRequest(options).status()), StartsWith("--since: 'soon'"));
  options.since = "2m";
  options.until = "90s";
  EXPECT_THAT(Message(MakeRequest(options).status()), HasSubstr("later than --since"));
}

TEST(QueryOptions, AskForNoMoreThanWasSaid) {
  v1::ReportRequest request = *MakeRequest({});
  EXPECT_FALSE(request.has_rank() || request.has_pid() || request.has_since_ns() ||
               request.has_until_ns());
  EXPECT_EQ(request.group_by(), v1::GROUP_BY_LINE);
  EXPECT_EQ(request.top(), 20u);
}

TEST(JobInfo, QuotesTheCommandAsAShellWould) {
  EXPECT_EQ(CommandText({"python", "train.py", "--lr", "0.1"}),
            "python train.py --lr 0.1");
  EXPECT_EQ(CommandText({"sh", "-c", "echo 'a b'", ""}),
            "sh -c 'echo '\\''a b'\\''' ''");
}

TEST(JobInfo, GivesEveryJobAnIdOfItsOwn) {
  v1::JobInfo a = MakeJobInfo("n", "c", {});
  v1::JobInfo b = MakeJobInfo("n", "c", {});
  EXPECT_EQ(a.id().size(), 32u);
  EXPECT_EQ(a.id().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(a.id(), b.id());
  EXPECT_FALSE(a.host().empty());
  EXPECT_GT(a.start_ns(), 0u);
}

}  // namespace
}  // namespace lull
