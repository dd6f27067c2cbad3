// What keeps lull from attaching, rule by rule.
#include "daemon/attach/examine/verdict.h"

#include <elf.h>
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

namespace lull::attach {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Ids(const std::vector<Obstacle>& list) {
  std::vector<std::string> ids;
  for (const Obstacle& one : list) ids.push_back(one.id);
  return ids;
}

class VerdictTest : public ::testing::Test {
 protected:
  // An ordinary process of our own user, with nothing in the way.
  VerdictTest() {
    process_.pid = 7;
    process_.exists = process_.readable = process_.same_root = true;
    process_.state = 'S';
    process_.user = "alice";
    process_.users = {1000, 1000, 1000};
    process_.groups = {100, 100, 100};
    process_.program = {true, OwnBits(), OwnMachine(), "/lib64/ld-linux-x86-64.so.2"};
    process_.files.glibc = "/lib/libc.so.6";
    process_.glibc_version = "2.36";
    process_.pid_namespace = process_.mount_namespace = process_.user_namespace =
        process_.network_namespace = Namespace::kOurs;
    view_.uid = 1000;
    view_.gid = 100;
    view_.user = "alice";
    view_.kernel_major = 6;
  }

  Verdict Judge() { return attach::Judge(process_, view_, circumstances_); }
  std::vector<std::string> Obstacles() { return Ids(Judge().obstacles); }
  std::vector<std::string> Notes() { return Ids(Judge().notes); }
  void MakeUsRoot() {
    view_.uid = view_.gid = 0;
    view_.capabilities = view_.permitted_capabilities = ~uint64_t{0};
  }

  Process process_;
  Viewpoint view_;
  Circumstances circumstances_;
};

TEST_F(VerdictTest, FindsNothingInTheWayOfAnOrdinaryProcess) {
  EXPECT_THAT(Obstacles(), IsEmpty());
  EXPECT_THAT(Notes(), IsEmpty());
}

TEST_F(VerdictTest, SaysOneThingAloneOfAProcessThatIsGoneOrDying) {
  process_.tracer = 3;
  process_.state = 'Z';
  EXPECT_THAT(Obstacles(), ElementsAre("dying"));
  process_.exists = false;
  EXPECT_THAT(Obstacles(), ElementsAre("not_found"));
}

TEST_F(VerdictTest, RefusesThreadsOfTheKernel) {
  process_.kernel_thread = true;
  EXPECT_THAT(Obstacles(), ElementsAre("kernel_thread"));
}

TEST_F(VerdictTest, NamesTheTracer) {
  process_.tracer = 99;
  process_.tracer_name = "gdb";
  Verdict verdict = Judge();
  EXPECT_THAT(Ids(verdict.obstacles), ElementsAre("traced"));
  EXPECT_THAT(verdict.obstacles[0].what, HasSubstr("gdb (PID 99)"));
}

TEST_F(VerdictTest, SaysHowToLetAStoppedProcessGoOn) {
  process_.state = 'T';
  Verdict verdict = Judge();
  EXPECT_THAT(Ids(verdict.obstacles), ElementsAre("stopped"));
  EXPECT_THAT(verdict.obstacles[0].advice, HasSubstr("kill -CONT 7"));
}

TEST_F(VerdictTest, RefusesProcessesOfOtherUsersUnlessWeAreCapable) {
  process_.users = {1001, 1001, 1001};
  EXPECT_THAT(Obstacles(), ElementsAre("other_user"));
  MakeUsRoot();
  EXPECT_THAT(Obstacles(), IsEmpty());
  process_.user_namespace = Namespace::kBelowOurs;
  EXPECT_THAT(Obstacles(), IsEmpty());
  process_.user_namespace = Namespace::kOther;  // above ours: our capabilities are void
  EXPECT_THAT(Obstacles(), ElementsAre("other_user"));
}

TEST_F(VerdictTest, LooksAtEveryUserAndGroupOfAProcess) {
  process_.users = {1000, 1000, 0};  // could become root again
  EXPECT_THAT(Obstacles(), ElementsAre("other_user"));
  process_.users = {1000, 1000, 1000};
  process_.groups = {100, 5, 100};
  EXPECT_THAT(Obstacles(), ElementsAre("other_group"));
}

TEST_F(VerdictTest, RefusesShieldedAndMorePrivilegedProcesses) {
  process_.dumpable = false;
  process_.readable = false;
  EXPECT_THAT(Obstacles(), ElementsAre("not_dumpable"));
  process_.dumpable = process_.readable = true;
  process_.capabilities = 1u << CAP_NET_RAW;
  EXPECT_THAT(Obstacles(), ElementsAre("capabilities"));
  view_.permitted_capabilities = 1u << CAP_NET_RAW;
  EXPECT_THAT(Obstacles(), IsEmpty());
}

TEST_F(VerdictTest, KnowsEachScopeOfYama) {
  view_.yama_scope = 0;
  EXPECT_THAT(Obstacles(), IsEmpty());
  view_.yama_scope = 1;
  EXPECT_THAT(Obstacles(), ElementsAre("yama"));
  EXPECT_THAT(Judge().obstacles[0].advice, HasSubstr("ptrace_scope=0"));
  EXPECT_THAT(Judge().obstacles[0].advice, HasSubstr("lull run --dormant"));
  circumstances_.is_descendant = true;
  EXPECT_THAT(Obstacles(), IsEmpty());
  view_.yama_scope = 2;
  EXPECT_THAT(Obstacles(), ElementsAre("yama"));
  MakeUsRoot();
  EXPECT_THAT(Obstacles(), IsEmpty());
  view_.yama_scope = 3;
  EXPECT_THAT(Obstacles(), ElementsAre("yama"));
}

TEST_F(VerdictTest, BelievesTheKernelMoreThanTheRules) {
  view_.yama_scope = 1;
  circumstances_.probe = 0;  // the target has named us with PR_SET_PTRACER
  EXPECT_THAT(Obstacles(), IsEmpty());
  view_.yama_scope = -1;
  circumstances_.probe = EPERM;  // a seccomp filter on us
  EXPECT_THAT(Obstacles(), ElementsAre("ptrace_denied"));
  EXPECT_THAT(Judge().obstacles[0].advice, HasSubstr("SYS_PTRACE"));
  circumstances_.probe = ESRCH;  // ended meanwhile: says nothing of permission
  EXPECT_THAT(Obstacles(), IsEmpty());
}

TEST_F(VerdictTest, TakesMemoryThatRootMayNotReadForADenial) {
  MakeUsRoot();
  process_.readable = false;
  process_.user_namespace = Namespace::kOurs;
  EXPECT_THAT(Obstacles(), ElementsAre("ptrace_denied"));
}

TEST_F(VerdictTest, RefusesProgramsThatTheShimIsNotFor) {
  process_.program.bits = 32;
  EXPECT_THAT(Obstacles(), ElementsAre("other_bitness"));
  process_.program.bits = OwnBits();
  process_.program.machine = EM_RISCV;
  EXPECT_THAT(Obstacles(), ElementsAre("other_machine"));
  process_.program.machine = OwnMachine();
  process_.glibc_version = "2.17";
  EXPECT_THAT(Obstacles(), ElementsAre("old_glibc"));
  process_.files.glibc = "";
  process_.program.loader = "";
  EXPECT_THAT(Obstacles(), ElementsAre("static_binary"));
  process_.program.loader = "/lib/ld-musl-x86_64.so.1";
  EXPECT_THAT(Obstacles(), ElementsAre("musl"));
}

TEST_F(VerdictTest, TakesAProgramThatTheLoaderRunsForADynamicOne) {
  process_.program.loader = "";  // /lib64/ld-linux-x86-64.so.2 ./train
  EXPECT_THAT(Obstacles(), IsEmpty());
}

TEST_F(VerdictTest, RefusesWhatTheKernelWouldPunish) {
  process_.seccomp = SeccompMode::kStrict;
  process_.shadow_stack = true;
  view_.kernel_major = 5;
  view_.kernel_minor = 2;
  EXPECT_THAT(Obstacles(),
              ElementsAre("strict_seccomp", "shadow_stack", "kernel_too_old"));
  view_.kernel_minor = 3;
  EXPECT_THAT(Obstacles(), ElementsAre("strict_seccomp", "shadow_stack"));
}

TEST_F(VerdictTest, KeepsOutOfASandboxThatKillsOrMayKill) {
  circumstances_.filters = {Sandbox::kKills, "connect"};
  Verdict verdict = Judge();
  EXPECT_THAT(Ids(verdict.obstacles), ElementsAre("seccomp_kills"));
  EXPECT_THAT(verdict.obstacles[0].what, HasSubstr("connect"));
  EXPECT_FALSE(verdict.obstacles[0].may_be_forced);
  circumstances_.filters = {Sandbox::kOwn, ""};
  verdict = Judge();
  EXPECT_THAT(Ids(verdict.obstacles), ElementsAre("own_seccomp_filter"));
  EXPECT_TRUE(verdict.obstacles[0].may_be_forced);
  circumstances_.filters_readable = true;  // `lull ps` leaves it to `lull attach`
  EXPECT_THAT(Obstacles(), IsEmpty());
  EXPECT_THAT(Notes(), ElementsAre("seccomp_filter"));
}

TEST_F(VerdictTest, TellsAJobUnderLullRunFromAnAttachedAndADetachedOne) {
  process_.files.shim = "/x/liblull.so";
  EXPECT_THAT(Obstacles(), IsEmpty());
  EXPECT_THAT(Notes(), ElementsAre("attached_before"));
  process_.files.shim_records = true;
  EXPECT_THAT(Obstacles(), ElementsAre("already_attached"));
  process_.preloaded = true;
  EXPECT_THAT(Obstacles(), ElementsAre("already_recorded"));
  process_.files.shim_records = false;
  EXPECT_THAT(Obstacles(), ElementsAre("already_recorded"));
}

TEST_F(VerdictTest, SaysWhyNothingIsRecordedBelowAFilterUnderLullRun) {
  process_.files.shim = "/x/liblull.so";
  process_.preloaded = true;
  circumstances_.filters.sandbox = Sandbox::kHarmless;
  EXPECT_THAT(Judge().obstacles[0].what, HasSubstr("seccomp filter"));
  circumstances_.filters.sandbox = Sandbox::kInherited;
  EXPECT_THAT(Judge().obstacles[0].what, Not(HasSubstr("seccomp filter")));
}

TEST_F(VerdictTest, NotesContainersAndRefusesThoseWithoutAPlaceForTheShim) {
  process_.same_root = false;
  process_.in_inner_pid_namespace = true;
  process_.user_namespace = Namespace::kBelowOurs;
  circumstances_.filters.sandbox = Sandbox::kInherited;
  EXPECT_THAT(Obstacles(), IsEmpty());
  EXPECT_THAT(Notes(), ElementsAre("other_mount_namespace", "other_pid_namespace",
                                   "other_user_namespace", "seccomp_filter"));
  circumstances_.foothold = absl::FailedPreconditionError("/tmp mounted noexec");
  Verdict verdict = Judge();
  EXPECT_THAT(Ids(verdict.obstacles), ElementsAre("no_foothold"));
  EXPECT_THAT(verdict.obstacles[0].what, HasSubstr("/tmp mounted noexec"));
}

TEST_F(VerdictTest, NotesPythonsWhoseStacksCannotBeRead) {
  for (const char* fine : {"3.8", "3.15", ""}) {
    process_.files.python_version = fine;
    EXPECT_THAT(Notes(), IsEmpty()) << fine;
  }
  for (const char* other : {"2.7", "3.7", "3.16", "3.13t"}) {
    process_.files.python_version = other;
    EXPECT_THAT(Notes(), ElementsAre("python_unsupported")) << other;
  }
}

TEST_F(VerdictTest, HasASentenceAndAWayOutForEveryObstacle) {
  process_.state = 'T';
  process_.users = {1, 1, 1};
  process_.program.bits = 32;
  process_.seccomp = SeccompMode::kStrict;
  process_.shadow_stack = true;
  circumstances_.foothold = absl::FailedPreconditionError("x");
  Verdict verdict = Judge();
  EXPECT_EQ(verdict.obstacles.size(), 6u);
  for (const Obstacle& one : verdict.obstacles) {
    EXPECT_EQ(one.what.back(), '.') << one.id;
    EXPECT_EQ(one.advice.back(), '.') << one.id;
    EXPECT_LE(one.brief.size(), 20u) << one.id;
  }
}

}  // namespace
}  // namespace lull::attach
