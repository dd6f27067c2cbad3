// Which processes of a job are chosen, by the rules of process_tree.h and role.h.
#include "daemon/attach/examine/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/attach/examine/role.h"
#include "tests/daemon/attach/examine/fake_proc.h"

namespace lull::attach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kRuntime[] = "/torch/lib/libcudart.so.12";
constexpr char kDriver[] = "/usr/lib/libcuda.so.1";
const std::vector<std::string> kSpawned = {
    "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)",
    "--multiprocessing-fork"};
const std::vector<std::string> kTracker = {
    "-c", "from multiprocessing.resource_tracker import main;main(5)"};

class TreeTest : public ::testing::Test {
 protected:
  void Add(FakeProcess process, const std::vector<std::string>& mapped = {},
           const std::vector<std::string>& environment = {}) {
    process.mapped.insert(process.mapped.end(), mapped.begin(), mapped.end());
    process.environment = environment;
    proc_.Add(process);
  }
  // As a DataLoader makes its workers: all is as in the parent, the layout too.
  void AddFork(FakeProcess parent, pid_t pid,
               const std::vector<std::string>& mapped = {},
               const std::vector<std::string>& environment = {}) {
    parent.stack = 0x7ffc00000000 + static_cast<uint64_t>(parent.pid) * 4096;
    parent.parent = parent.pid;
    parent.pid = pid;
    Add(parent, mapped, environment);
  }
  void AddShell(pid_t pid, pid_t parent) {
    FakeProcess shell;
    shell.pid = pid;
    shell.parent = parent;
    shell.name = "sh";
    shell.arguments = {"sh", "job.sh"};
    shell.executable = "/bin/dash";
    proc_.Add(shell);
  }
  std::vector<pid_t> Workers(pid_t root) { return FindWorkers(root, proc_.procfs()); }

  FakeProc proc_;
};

TEST_F(TreeTest, FindsTheRanksBelowTorchrunAndLeavesTheirHelpersAlone) {
  Add(Python(10, 1, {"/usr/bin/torchrun", "--nproc-per-node", "2", "train.py"}),
      {kRuntime});
  for (pid_t rank : {20, 30}) {
    FakeProcess script = Python(rank, 10, {"-u", "train.py"});
    std::vector<std::string> environment = {"RANK=" + std::to_string(rank / 10 - 2)};
    Add(script, {kRuntime, kDriver}, environment);
    AddFork(script, rank + 1, {kRuntime, kDriver}, environment);
    AddFork(script, rank + 2, {kRuntime, kDriver}, environment);
    Add(Python(rank + 3, rank, kTracker), {}, environment);
    Add(Python(rank + 4, rank, kSpawned), {kRuntime}, environment);
  }
  EXPECT_THAT(Workers(10), ElementsAre(20, 30));
  EXPECT_THAT(Workers(20), ElementsAre(20));
}

TEST_F(TreeTest, FindsCpuRanksByTheirEnvironment) {
  AddShell(5, 1);
  Add(Python(10, 5, {"-m", "torch.distributed.run", "train.py"}), {}, {"RANK=0"});
  FakeProcess script = Python(20, 10, {"train.py"});
  Add(script, {}, {"RANK=0"});
  AddFork(script, 21, {}, {"RANK=0"});
  Add(Python(22, 20, {"-m", "tensorboard.main"}), {}, {"RANK=0"});
  Add(Python(30, 10, {"train.py"}), {}, {"RANK=1"});
  EXPECT_THAT(Workers(5), ElementsAre(20, 30));
  EXPECT_THAT(Workers(10), ElementsAre(20, 30));
}

TEST_F(TreeTest, LeavesOutAScriptThatOnlyWrapsTheRank) {
  Add(Python(10, 1, {"wrapper.py"}), {}, {"RANK=0"});
  Add(Python(20, 10, {"train.py"}), {kRuntime}, {"RANK=0"});
  EXPECT_THAT(Workers(10), ElementsAre(20));
}

TEST_F(TreeTest, FindsSpawnedRanksOnceTheyHaveCalledCuda) {
  Add(Python(10, 1, {"main.py"}), {});
  Add(Python(20, 10, kSpawned), {kRuntime, kDriver});
  Add(Python(21, 10, kSpawned), {kRuntime, kDriver});
  Add(Python(22, 10, kSpawned), {kRuntime});  // a DataLoader worker
  EXPECT_THAT(Workers(10), ElementsAre(20, 21));
}

TEST_F(TreeTest, FindsForkedRanksWhoseParentHasNotCalledCuda) {
  FakeProcess parent = Python(10, 1, {"notebook.py"});
  Add(parent, {});
  AddFork(parent, 20, {kRuntime, kDriver});
  EXPECT_THAT(Workers(10), ElementsAre(20));
}

TEST_F(TreeTest, TakesARestartWithTheSameCommandForAProcessOfItsOwn) {
  Add(Python(10, 1, {"train.py"}));
  Add(Python(20, 10, {"train.py"}), {kRuntime});  // an exec laid it out anew
  EXPECT_THAT(Workers(10), ElementsAre(20));
}

TEST_F(TreeTest, KnowsAForkThatHasGivenItselfAnotherTitle) {
  FakeProcess script = Python(20, 1, {"train.py"});
  Add(script, {kRuntime, kDriver});
  FakeProcess worker = script;
  worker.arguments = {"loader: worker 3"};
  AddFork(worker, 21, {kRuntime, kDriver});
  EXPECT_THAT(Workers(20), ElementsAre(20));
}

TEST_F(TreeTest, KnowsADataLoaderWorkerByTheNameThatPyTorchGaveIt) {
  Add(Python(10, 1, {"train.py"}), {kRuntime, kDriver});
  FakeProcess worker = Python(20, 10, kSpawned);
  worker.name = "pt_data_worker";
  Add(worker, {kRuntime, kDriver});
  EXPECT_THAT(Workers(10), ElementsAre(10));
}

TEST_F(TreeTest, FindsNativeRanksBelowMpirun) {
  AddShell(10, 1);
  FakeProcess native;
  for (pid_t pid : {20, 21}) {
    native.pid = pid;
    native.parent = 10;
    Add(native, {kDriver});
  }
  EXPECT_THAT(Workers(10), ElementsAre(20, 21));
}

TEST_F(TreeTest, FallsBackToThePythonBelowAScript) {
  AddShell(10, 1);
  Add(Python(20, 10, {"train.py"}));
  Add(Python(21, 20, {"tool.py"}));
  EXPECT_THAT(Workers(10), ElementsAre(20));
}

TEST_F(TreeTest, TakesALoneProcessForWhatTheUserMeant) {
  FakeProcess native;
  native.pid = 10;
  Add(native);
  EXPECT_THAT(Workers(10), ElementsAre(10));
}

TEST_F(TreeTest, FindsNothingBelowALauncherThatHasStartedNothing) {
  Add(Python(10, 1, {"/usr/bin/torchrun", "train.py"}), {kRuntime});
  EXPECT_THAT(Workers(10), IsEmpty());
  AddShell(11, 1);
  AddShell(12, 11);
  EXPECT_THAT(Workers(11), IsEmpty());
  EXPECT_THAT(Workers(999), IsEmpty());
}

TEST_F(TreeTest, EndsWhenParentsGoInACircle) {
  Add(Python(10, 11, {"a.py"}));
  Add(Python(11, 10, {"b.py"}));
  EXPECT_THAT(Workers(10), ElementsAre(10));
}

TEST_F(TreeTest, LeavesOutRanksThatHaveEnded) {
  Add(Python(10, 1, {"/usr/bin/torchrun", "train.py"}));
  FakeProcess dead = Python(20, 10, {"train.py"});
  dead.state = 'Z';
  Add(dead, {}, {"RANK=0"});
  EXPECT_THAT(Workers(10), IsEmpty());
}

}  // namespace
}  // namespace lull::attach
