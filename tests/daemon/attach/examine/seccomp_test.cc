// What filters would do, and whose they are.
#include "daemon/attach/examine/seccomp.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "absl/strings/str_cat.h"
#include "daemon/attach/examine/process.h"
#include "tests/daemon/attach/examine/fake_proc.h"

namespace lull::attach {
namespace {

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr uint16_t kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint16_t kIfMore = BPF_JMP | BPF_JGT | BPF_K;
constexpr uint16_t kIfBits = BPF_JMP | BPF_JSET | BPF_K;
constexpr uint16_t kReturn = BPF_RET | BPF_K;
constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t kArch = offsetof(seccomp_data, arch);
constexpr uint32_t kArgument = offsetof(seccomp_data, args);

sock_filter Do(int code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
  return {static_cast<uint16_t>(code), yes, no, k};
}
sock_filter Return(uint32_t action) { return Do(kReturn, action); }

SeccompProgram For(long call, uint32_t action) {
  return {Do(kLoad, kNumber), Do(kIfEqual, static_cast<uint32_t>(call), 0, 1),
          Return(action), Return(SECCOMP_RET_ALLOW)};
}

TEST(MayKill, KnowsEveryAction) {
  for (uint32_t lethal : {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
                          SECCOMP_RET_TRAP, 0x12340000u}) {
    EXPECT_TRUE(MayKill(For(SYS_connect, lethal), SYS_connect)) << lethal;
    EXPECT_FALSE(MayKill(For(SYS_connect, lethal), SYS_socket)) << lethal;
  }
  for (uint32_t mild : {SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_ERRNO | 13u,
                        SECCOMP_RET_TRACE | 1u, SECCOMP_RET_USER_NOTIF}) {
    EXPECT_FALSE(MayKill(For(SYS_connect, mild), SYS_connect)) << mild;
  }
}

TEST(MayKill, TakesWhatAnArgumentDecidesBothWays) {
  SeccompProgram program = {Do(kLoad, kNumber),
                            Do(kIfEqual, SYS_socket, 0, 3),
                            Do(kLoad, kArgument),
                            Do(kIfEqual, 1, 1, 0),
                            Return(SECCOMP_RET_KILL_PROCESS),
                            Return(SECCOMP_RET_ALLOW)};
  EXPECT_TRUE(MayKill(program, SYS_socket));
  EXPECT_FALSE(MayKill(program, SYS_connect));
  program[4] = Return(SECCOMP_RET_ERRNO);
  EXPECT_FALSE(MayKill(program, SYS_socket));
  program[3] = Do(kIfBits, 1, 1, 0);
  program[4] = Return(SECCOMP_RET_TRAP);
  EXPECT_TRUE(MayKill(program, SYS_socket));
}

// As libseccomp and systemd write them: the machine first, then halves of the numbers.
TEST(MayKill, FollowsTreesOfNumbersForThisMachineAlone) {
#if defined(__x86_64__)
  constexpr uint32_t kOurs = AUDIT_ARCH_X86_64;
#else
  constexpr uint32_t kOurs = AUDIT_ARCH_AARCH64;
#endif
  SeccompProgram program = {Do(kLoad, kArch),
                            Do(kIfEqual, kOurs, 1, 0),
                            Return(SECCOMP_RET_KILL_PROCESS),
                            Do(kLoad, kNumber),
                            Do(kIfMore, 1000, 0, 1),
                            Return(SECCOMP_RET_KILL_PROCESS),
                            Do(kIfEqual, SYS_memfd_create, 0, 1),
                            Return(SECCOMP_RET_TRAP),
                            Return(SECCOMP_RET_ALLOW)};
  EXPECT_FALSE(MayKill(program, SYS_socket));
  EXPECT_TRUE(MayKill(program, SYS_memfd_create));
}

TEST(MayKill, Calculates) {
  // X = 5; M[3] = nr; A = (M[3] + X) ^ 1; kill if that is what it is for `socket`.
  SeccompProgram program = {Do(BPF_LDX | BPF_W | BPF_IMM, 5),
                            Do(kLoad, kNumber),
                            Do(BPF_ST, 3),
                            Do(BPF_LD | BPF_W | BPF_IMM, 0),
                            Do(BPF_LD | BPF_W | BPF_MEM, 3),
                            Do(BPF_ALU | BPF_ADD | BPF_X, 0),
                            Do(BPF_ALU | BPF_XOR | BPF_K, 1),
                            Do(kIfEqual, (SYS_socket + 5) ^ 1, 0, 1),
                            Return(SECCOMP_RET_KILL_THREAD),
                            Return(SECCOMP_RET_ALLOW)};
  EXPECT_TRUE(MayKill(program, SYS_socket));
  EXPECT_FALSE(MayKill(program, SYS_connect));
}

TEST(MayKill, ForgetsWhatTwoWaysLeftDifferent) {
  // A is 1 or 2, as an argument decides; the action comes out of A.
  SeccompProgram program = {Do(kLoad, kArgument),
                            Do(kIfEqual, 0, 0, 2),
                            Do(BPF_LD | BPF_W | BPF_IMM, SECCOMP_RET_ALLOW),
                            Do(BPF_JMP | BPF_JA, 1),
                            Do(BPF_LD | BPF_W | BPF_IMM, SECCOMP_RET_ERRNO),
                            Do(BPF_RET | BPF_A, 0)};
  EXPECT_TRUE(MayKill(program, SYS_socket)) << "not known is not safe";
  program[1] = Do(BPF_JMP | BPF_JA, 2);
  EXPECT_FALSE(MayKill(program, SYS_socket));
}

TEST(MayKill, IsTrueOfProgramsWithoutSense) {
  EXPECT_TRUE(MayKill({}, SYS_socket));
  EXPECT_TRUE(MayKill(SeccompProgram{Do(kLoad, kNumber)}, SYS_socket)) << "no end";
  EXPECT_TRUE(MayKill(
      SeccompProgram{Do(BPF_JMP | BPF_JA, 4'000'000'000u), Return(SECCOMP_RET_ALLOW)},
      SYS_socket));
}

// A process in a folder that looks like /proc.
class Sandboxes : public ::testing::Test {
 protected:
  void Add(pid_t pid, int filters, const std::string& numbers = "") {
    FakeProcess process;
    process.pid = pid;
    process.status = Status(filters);
    if (!numbers.empty()) absl::StrAppend(&process.status, "NSpid:\t", numbers, "\n");
    proc_.Add(process);
    AddThread(pid, pid, filters);
  }
  static std::string Status(int filters) {
    return filters < 0 ? "Seccomp:\t2\n"
                       : absl::StrCat("Seccomp:\t", filters == 0 ? 0 : 2,
                                      "\nSeccomp_filters:\t", filters, "\n");
  }
  void AddThread(pid_t pid, pid_t tid, int filters) {
    proc_.Write(absl::StrCat(pid, "/task/", tid, "/status"), Status(filters));
  }
  Filters Judge(pid_t pid, const ReadFilters& read = nullptr) {
    return JudgeFilters(ReadProcess(pid, proc_.procfs()), proc_.procfs(), read);
  }

  FakeProc proc_;
};

TEST_F(Sandboxes, AreTheRuntimesWhereTheFirstProcessHasAsMany) {
  Add(1, 2);
  Add(7, 2);
  Add(8, 3);
  Add(9, 0);
  EXPECT_EQ(Judge(7).sandbox, Sandbox::kInherited);
  EXPECT_EQ(Judge(8).sandbox, Sandbox::kOwn);
  EXPECT_EQ(Judge(9).sandbox, Sandbox::kNone);
  AddThread(7, 70, 3);
  EXPECT_EQ(Judge(7).sandbox, Sandbox::kOwn) << "one thread is enough";
}

TEST_F(Sandboxes, AreItsOwnWhereNobodySaysHowMany) {
  Add(1, -1);
  Add(7, -1);
  EXPECT_EQ(Judge(7).sandbox, Sandbox::kOwn);
}

TEST_F(Sandboxes, AreJudgedByWhatTheyDoWhereTheyCanBeRead) {
  Add(1, 0);
  Add(7, 1);
  std::vector<SeccompProgram> programs = {For(SYS_memfd_create, SECCOMP_RET_ERRNO),
                                          For(SYS_reboot, SECCOMP_RET_KILL_PROCESS)};
  auto read = [&](pid_t, pid_t) -> absl::StatusOr<std::vector<SeccompProgram>> {
    return programs;
  };
  EXPECT_EQ(Judge(7, read).sandbox, Sandbox::kHarmless);
  programs.push_back(For(SYS_connect, SECCOMP_RET_TRAP));
  Filters judged = Judge(7, read);
  EXPECT_EQ(judged.sandbox, Sandbox::kKills);
  EXPECT_EQ(judged.call, "connect");
  EXPECT_EQ(Judge(7, [](pid_t, pid_t) { return absl::UnimplementedError(""); }).sandbox,
            Sandbox::kOwn);
}

TEST_F(Sandboxes, OfOneThreadIsReadThoughTheOthersHaveNone) {
  Add(1, 0);
  Add(7, 0);
  AddThread(7, 71, 1);
  pid_t asked = 0;
  Judge(7, [&](pid_t, pid_t tid) -> absl::StatusOr<std::vector<SeccompProgram>> {
    asked = tid;
    return std::vector<SeccompProgram>{};
  });
  EXPECT_EQ(asked, 71);
}

}  // namespace
}  // namespace lull::attach
