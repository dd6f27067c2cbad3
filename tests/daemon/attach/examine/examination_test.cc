// Facts, role and verdict put together, in a folder that looks like /proc.
#include "daemon/attach/examine/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/attach/examine/viewpoint.h"
#include "tests/daemon/attach/examine/fake_proc.h"

namespace lull::attach {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ExaminationTest : public ::testing::Test {
 protected:
  Examination See(pid_t pid) { return Examine(pid, {.proc = proc_.procfs().Path("")}); }
  static std::vector<std::string> Ids(const Examination& seen) {
    std::vector<std::string> ids;
    for (const Obstacle& one : seen.obstacles) ids.push_back(one.id);
    return ids;
  }

  FakeProc proc_;
};

TEST_F(ExaminationTest, FindsAnOrdinaryScriptFitToBeAttachedTo) {
  proc_.Add(Python(7, 1, {"train.py"}));
  Examination seen = See(7);
  EXPECT_TRUE(seen.CanBeAttached());
  EXPECT_EQ(seen.role, Role::kOrdinary);
  EXPECT_TRUE(IsCandidate(seen));
}

TEST_F(ExaminationTest, SaysThatAProcessIsNotThere) {
  EXPECT_THAT(Ids(See(7)), ElementsAre("not_found"));
}

TEST_F(ExaminationTest, LetsUsTraceWhatIsBelowUsUnderYama) {
  proc_.Write("sys/kernel/yama/ptrace_scope", "1\n");
  proc_.Add(Python(7, 42, {"train.py"}));  // 42 is what we are
  proc_.Add(Python(8, 7, {"other.py"}));
  proc_.Add(Python(9, 1, {"train.py"}));
  EXPECT_THAT(Ids(See(7)), IsEmpty());
  EXPECT_THAT(Ids(See(8)), IsEmpty());
  EXPECT_THAT(Ids(See(9)), ElementsAre("yama"));
}

TEST_F(ExaminationTest, LooksForAFootholdWhereTheFilesAreOthers) {
  FakeProcess container = Python(7, 1, {"train.py"});
  container.inner_mounts = "4026539999";
  container.root_folder = proc_.folder() + "/inside";
  std::filesystem::create_directories(container.root_folder);
  proc_.Add(container);
  EXPECT_THAT(Ids(See(7)), ElementsAre("no_foothold"));
  std::filesystem::create_directories(container.root_folder + "/tmp");
  EXPECT_THAT(Ids(See(7)), IsEmpty());
}

TEST_F(ExaminationTest, OfAllLeavesOutOurselvesAndTheKernel) {
  proc_.Add(Python(7, 1, {"train.py"}));
  FakeProcess kernel;
  kernel.pid = 8;
  kernel.status = "Kthread:\t1\n";
  proc_.Add(kernel);
  FakeProcess shell;
  shell.pid = 9;
  proc_.Add(shell);
  std::vector<pid_t> pids, candidates;
  for (const Examination& seen : ExamineAll({.proc = proc_.procfs().Path("")})) {
    pids.push_back(seen.process.pid);
    if (IsCandidate(seen)) candidates.push_back(seen.process.pid);
  }
  EXPECT_THAT(pids, ElementsAre(7, 9));
  EXPECT_THAT(candidates, ElementsAre(7));
}

TEST_F(ExaminationTest, SeesOurselvesAsTheKernelDoes) {
  proc_.Write("sys/kernel/yama/ptrace_scope", "2\n");
  Viewpoint view = ReadViewpoint(proc_.procfs());
  EXPECT_EQ(view.pid, 42);
  EXPECT_EQ(view.yama_scope, 2);
  EXPECT_EQ(view.kernel_major, 6);
  EXPECT_EQ(view.kernel_minor, 1);
  EXPECT_FALSE(view.may_trace_anybody());
}

TEST(Viewpoint, OfAKernelWithoutYamaHasNoScope) {
  FakeProc proc;
  EXPECT_EQ(ReadViewpoint(proc.procfs()).yama_scope, -1);
}

}  // namespace
}  // namespace lull::attach
