#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "preload/entry/settings.h"
#include "preload/entry/start.h"

namespace lull {
namespace {

std::unique_ptr<Settings> read(const std::vector<std::string>& environment) {
  std::vector<const char*> envp;
  for (const std::string& entry : environment) envp.push_back(entry.c_str());
  envp.push_back(nullptr);
  const char* argv[] = {"python", "train.py", nullptr};
  auto settings = std::make_unique<Settings>();
  read_settings(2, argv, envp.data(), 1000, settings.get());
  return settings;
}

std::string automatic(const Settings& settings) {
  char path[kSocketPathSize];
  return automatic_socket(settings, 77, path) ? path : "none";
}

TEST(Settings, TakeTheSocketOfTheRelay) {
  auto settings = read({"LULL_SOCKET=/run/lull/job.sock", "LULL_SOCKETS=/no"});
  EXPECT_TRUE(settings->enabled);
  EXPECT_STREQ(settings->socket, "/run/lull/job.sock");
  EXPECT_EQ(automatic(*settings), "none");
}

TEST(Settings, AreOffWhenToldSo) {
  EXPECT_FALSE(read({"LULL_DISABLE=1"})->enabled);
  EXPECT_TRUE(read({"LULL_DISABLE=0"})->enabled);
  EXPECT_TRUE(read({"LULL_DISABLE="})->enabled);
}

TEST(Settings, KnowWhetherSamplesAreWanted) {
  EXPECT_TRUE(read({"LULL_SAMPLES=0"})->no_samples);
  EXPECT_FALSE(read({"LULL_SAMPLES=1"})->no_samples);
  EXPECT_FALSE(read({})->no_samples);
}

TEST(Settings, KnowTheNvtxRangeThatIsAStep) {
  EXPECT_STREQ(read({"LULL_STEP_RANGE=train step"})->step_range, "train step");
  EXPECT_STREQ(read({})->step_range, "");
  EXPECT_STREQ(read({"LULL_STEP_RANGE=" + std::string(128, 'x')})->step_range, "");
}

TEST(Settings, AreOffWhenTheSocketCannotBeReached) {
  EXPECT_FALSE(read({"LULL_SOCKET=/" + std::string(107, 'x')})->enabled);
  EXPECT_TRUE(read({"LULL_SOCKET=/" + std::string(106, 'x')})->enabled);
}

TEST(Settings, GuessTheSocketOfTheSession) {
  EXPECT_EQ(automatic(*read({})), "/tmp/lull-1000/auto-77.sock");
  EXPECT_EQ(automatic(*read({"XDG_RUNTIME_DIR=/run/user/1000"})),
            "/run/user/1000/lull/auto-77.sock");
  EXPECT_EQ(automatic(*read({"XDG_RUNTIME_DIR=/run/user/1000", "LULL_RUNTIME_DIR=/r"})),
            "/r/auto-77.sock");
  EXPECT_EQ(automatic(*read({"LULL_RUNTIME_DIR=relative"})),
            "/tmp/lull-1000/auto-77.sock");
  EXPECT_EQ(automatic(*read({"LULL_RUNTIME_DIR=/" + std::string(100, 'x')})), "none");
}

TEST(Settings, KeepForTheRelayWhatItNeedsAndNothingOfTheLoader) {
  auto settings =
      read({"HOME=/home/u", "LD_PRELOAD=/x/liblull.so", "LULL_COLLECTOR=a:1",
            "LD_LIBRARY_PATH=/y", "PATH=/bin", "PYTHONPATH=/z"});
  std::set<std::string> kept;
  for (const char* entry = settings->relay_environment; *entry != 0;
       entry += std::string(entry).size() + 1) {
    kept.insert(entry);
  }
  EXPECT_EQ(kept,
            (std::set<std::string>{"HOME=/home/u", "LULL_COLLECTOR=a:1", "PATH=/bin"}));
}

TEST(Settings, NeverOverrunOnAnEnormousEnvironment) {
  auto settings = read(std::vector<std::string>(9, "LULL_X=" + std::string(1000, 'x')));
  size_t used = 0;
  while (settings->relay_environment[used] != 0) {
    used += std::string(settings->relay_environment + used).size() + 1;
  }
  EXPECT_EQ(used, 8u * 1008);
}

TEST(ReasonToRecord, IsTheGpuAlwaysAndPythonOnlyInAProcessOfItsOwn) {
  Circumstances own = {true, ProcessKind::kOrdinary, false, false};
  Circumstances launcher = {true, ProcessKind::kLauncher, false, false};
  Circumstances helper = {true, ProcessKind::kHelper, false, false};
  Circumstances fork_child = {false, ProcessKind::kOrdinary, false, false};
  for (const Circumstances& any : {own, launcher, helper, fork_child}) {
    EXPECT_TRUE(is_reason_to_record(Trigger::kGpuCall, any));
    EXPECT_TRUE(is_reason_to_record(Trigger::kTensor, any));
  }
  EXPECT_TRUE(is_reason_to_record(Trigger::kPython, own));
  EXPECT_FALSE(is_reason_to_record(Trigger::kPython, launcher));
  EXPECT_FALSE(is_reason_to_record(Trigger::kPython, helper));
  EXPECT_FALSE(is_reason_to_record(Trigger::kPython, fork_child));
}

TEST(ReasonToRecord, IsATensorOfADataLoaderWorkerOnlyWhenAskedFor) {
  Circumstances worker = {false, ProcessKind::kOrdinary, true, false};
  EXPECT_FALSE(is_reason_to_record(Trigger::kTensor, worker));
  EXPECT_TRUE(is_reason_to_record(Trigger::kGpuCall, worker));
  worker.workers_wanted = true;
  EXPECT_TRUE(is_reason_to_record(Trigger::kTensor, worker));
}

}  // namespace
}  // namespace lull
