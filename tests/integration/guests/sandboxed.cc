// A program below a seccomp filter:
//   sandboxed FILTER [CALL...] work       makes GPU calls until its input ends
//   sandboxed FILTER [CALL...] -- COMMAND...
// FILTER kills for these calls (`kill`), sends SIGSYS (`trap`), answers EPERM
// (`errno`), forbids nothing (`nothing`), or kills for all that neither lull nor this
// program needs
// (`allow`; `allow_but`: less these calls). `late_...`: installed behind the first
// calls. `raw_...`: by no function of libc's.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "preload/abi/system_calls.h"

extern "C" int cudaFree(void*);

namespace {

using lull::abi::SystemCall;

std::vector<SystemCall> CallsOfBoth() {
  std::vector<SystemCall> calls;
  for (const SystemCall& call : lull::abi::kSystemCalls) calls.push_back(call);
  for (const SystemCall& call : lull::abi::kGpuSystemCalls) calls.push_back(call);
  calls.push_back({SYS_exit_group, "exit_group"});
  calls.push_back({SYS_restart_syscall, "restart_syscall"});
  calls.push_back({SYS_write, "write"});
#ifdef SYS_poll
  calls.push_back({SYS_poll, "poll"});
#endif
  return calls;
}

long NumberOf(const char* name) {
  for (const SystemCall& call : CallsOfBoth()) {
    if (strcmp(call.name, name) == 0) return call.number;
  }
  return strtol(name, nullptr, 10);
}

sock_filter Do(uint16_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
  return {code, yes, no, k};
}

constexpr uint16_t kReturn = BPF_RET | BPF_K;
constexpr uint16_t kIfEqual = BPF_JMP | BPF_JEQ | BPF_K;

std::vector<sock_filter> Program(const std::string& kind,
                                 const std::vector<long>& named) {
  std::vector<sock_filter> program = {
      Do(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  auto answer = [&](long call, uint32_t action) {
    program.push_back(Do(kIfEqual, static_cast<uint32_t>(call), 0, 1));
    program.push_back(Do(kReturn, action));
  };
  const bool allows = kind.rfind("allow", 0) == 0;
  const uint32_t action = kind == "trap"    ? SECCOMP_RET_TRAP
                          : kind == "errno" ? SECCOMP_RET_ERRNO | EPERM
                                            : SECCOMP_RET_KILL_PROCESS;
  for (long call : named) answer(call, action);
  for (const SystemCall& call : CallsOfBoth()) {
    if (allows) answer(call.number, SECCOMP_RET_ALLOW);
  }
  program.push_back(Do(kReturn, allows ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW));
  return program;
}

bool Install(std::vector<sock_filter> program, bool raw) {
  sock_fprog all = {static_cast<unsigned short>(program.size()), program.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifdef __x86_64__
  if (raw) {
    long result = SYS_prctl;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(PR_SET_SECCOMP), "S"(SECCOMP_MODE_FILTER), "d"(&all)
                 : "rcx", "r11", "memory");
    return result == 0;
  }
#endif
  (void)raw;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) == 0;
}

bool Strip(std::string* text, const char* prefix) {
  if (text->rfind(prefix, 0) != 0) return false;
  text->erase(0, strlen(prefix));
  return true;
}

int Work(bool late, bool raw, const std::vector<sock_filter>& program) {
  for (int i = 0; late && i < 10; ++i) cudaFree(nullptr);
  if (late && !Install(program, raw)) return 2;
  if (write(1, "working\n", 8) != 8) return 2;  // not stdio, which makes other calls
  pollfd input = {0, POLLIN, 0};
  do {
    for (int i = 0; i < 1000; ++i) cudaFree(nullptr);
  } while (poll(&input, 1, 5) == 0);
  return write(1, "done\n", 5) == 5 ? 7 : 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::string kind = arguments[1];
  const bool late = Strip(&kind, "late_");
  const bool raw = Strip(&kind, "raw_");
  int at = 2;
  std::vector<long> named;
  for (; at < count; ++at) {
    if (strcmp(arguments[at], "work") == 0 || strcmp(arguments[at], "--") == 0) break;
    named.push_back(NumberOf(arguments[at]));
  }
  std::vector<sock_filter> program = Program(kind, named);
  if (!late && !Install(program, raw)) return 2;
  if (at < count && strcmp(arguments[at], "work") == 0) return Work(late, raw, program);
  execvp(arguments[at + 1], arguments + at + 1);
  return 127;
}
