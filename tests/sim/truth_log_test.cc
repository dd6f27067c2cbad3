#include "tests/sim/engine/truth_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "tests/sim/driver_fixture.h"

namespace lull::sim {
namespace {

constexpr uint32_t kApi = static_cast<uint32_t>(RecordType::kApi);

TruthRecord call(uint64_t correlation) {
  TruthRecord record{};
  record.type = kApi;
  record.correlation = correlation;
  return record;
}

std::set<uint64_t> correlations(const std::vector<TruthRecord>& records) {
  std::set<uint64_t> found;
  for (const TruthRecord& record : records) {
    if (record.type == kApi) found.insert(record.correlation);
  }
  return found;
}

TEST(TruthLog, KeepsEveryRecordOfEveryThread) {
  std::string path = scratch_path("threads");
  TruthLog log;
  ASSERT_TRUE(log.open(path));
  constexpr uint64_t kEach = 20'000;  // 30 chunks a thread: the file grows
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 16; ++t) {
    threads.emplace_back([&log, t] {
      for (uint64_t i = 0; i < kEach; ++i) log.append(call(t * kEach + i + 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(correlations(read_truth(path)).size(), 16 * kEach);
}

TEST(TruthLog, LosesNothingWhenTheProcessIsKilled) {
  std::string path = scratch_path("killed");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    TruthLog log;
    if (!log.open(path)) _exit(1);
    for (uint64_t i = 1; i <= 5'000; ++i) log.append(call(i));
    log.append(call(5'001));  // begun, never completed
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(correlations(read_truth(path)).size(), 5'001u);
}

TEST(TruthLog, WritesANameOnceHoweverLongItIs) {
  std::string path = scratch_path("names");
  std::string long_name(1'000, 'k');
  TruthLog log;
  ASSERT_TRUE(log.open(path));
  uint32_t id = log.name(long_name);
  EXPECT_EQ(log.name(long_name), id);
  EXPECT_NE(log.name("other"), id);
  EXPECT_EQ(read_truth(path).size(), 13u + 1u);  // 13 parts of 80 bytes
}

TEST(TruthLog, NeverWritesToAFileThatExists) {
  std::string path = scratch_path("taken");
  TruthLog first, second;
  ASSERT_TRUE(first.open(path));
  EXPECT_FALSE(second.open(path));
  EXPECT_FALSE(second.enabled());
  EXPECT_EQ(second.append(call(1)), nullptr);
}

using ForkedDriver = DriverTest;

TEST_F(ForkedDriver, AForkChildOfAnInitialisedProcessHasNoDeviceAndLeavesTheLogAlone) {
  std::string log = scratch_path("truth." + std::to_string(getpid()));
  size_t before = read_truth(log).size();
  pid_t child = fork();
  if (child == 0) {
    int count = 0;
    bool refused = cu.cuDeviceGetCount(&count) == 3 && cu.start() == 3;
    _exit(refused ? 0 : 1);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_truth(log).size(), before);
}

}  // namespace
}  // namespace lull::sim
