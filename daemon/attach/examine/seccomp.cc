#include "daemon/attach/examine/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/attach/examine/process.h"
#include "daemon/procfs/stat.h"
#include "preload/abi/system_calls.h"

namespace lull::attach {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

using Value = std::optional<uint32_t>;  // nullopt: not known

// What may be in the machine's registers in front of an instruction.
struct Machine {
  bool reached = false;
  Value a = 0;
  Value x = 0;
  std::array<Value, BPF_MEMWORDS> memory = {};

  void Join(const Machine& other) {
    if (!reached) {
      *this = other;
      return;
    }
    auto join = [](Value* mine, const Value& theirs) {
      if (*mine != theirs) *mine = std::nullopt;
    };
    join(&a, other.a);
    join(&x, other.x);
    for (size_t i = 0; i < memory.size(); ++i) join(&memory[i], other.memory[i]);
  }
};

Value Loaded(uint32_t offset, long call) {
  if (offset == offsetof(seccomp_data, nr)) return static_cast<uint32_t>(call);
  if (offset == offsetof(seccomp_data, arch)) return kArch;
  return std::nullopt;
}

Value Calculated(uint16_t operation, Value a, Value b) {
  if (operation == BPF_NEG) return a ? Value(-*a) : std::nullopt;
  if (!a || !b) return std::nullopt;
  switch (operation) {
    case BPF_ADD:
      return *a + *b;
    case BPF_SUB:
      return *a - *b;
    case BPF_MUL:
      return *a * *b;
    case BPF_DIV:
      return *b == 0 ? Value() : Value(*a / *b);
    case BPF_OR:
      return *a | *b;
    case BPF_AND:
      return *a & *b;
    case BPF_XOR:
      return *a ^ *b;
    case BPF_LSH:
      return *b > 31 ? Value() : Value(*a << *b);
    case BPF_RSH:
      return *b > 31 ? Value() : Value(*a >> *b);
    default:
      return std::nullopt;
  }
}

std::optional<bool> Compared(uint16_t operation, Value a, Value b) {
  if (!a || !b) return std::nullopt;
  switch (operation) {
    case BPF_JEQ:
      return *a == *b;
    case BPF_JGT:
      return *a > *b;
    case BPF_JGE:
      return *a >= *b;
    case BPF_JSET:
      return (*a & *b) != 0;
    default:
      return std::nullopt;
  }
}

bool IsLethal(uint32_t result) {
  switch (result & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_ERRNO:
    case SECCOMP_RET_TRACE:  // without a tracer that asked for it: ENOSYS
    case SECCOMP_RET_USER_NOTIF:
      return false;
    default:  // also what this kernel does not know
      return true;
  }
}

// Executes a program for one call, along every way that it could take. Jumps lead
// forwards only, so one pass sees all ways to an instruction before the instruction.
class Run {
 public:
  Run(std::span<const sock_filter> program, long call)
      : program_(program), call_(call), machines_(program.size()) {}

  bool MayKill() {
    if (program_.empty()) return true;
    machines_[0].reached = true;
    for (size_t at = 0; at < program_.size() && !lethal_; ++at) {
      if (machines_[at].reached) Execute(at);
    }
    return lethal_;
  }

 private:
  void GoOn(size_t to, const Machine& machine) {
    if (to >= program_.size()) {
      lethal_ = true;
    } else {
      machines_[to].Join(machine);
    }
  }

  void Jump(size_t at, const Machine& machine) {
    const sock_filter& instruction = program_[at];
    if (BPF_OP(instruction.code) == BPF_JA) {
      return GoOn(at + 1 + instruction.k, machine);
    }
    Value other = BPF_SRC(instruction.code) == BPF_X ? machine.x : Value(instruction.k);
    auto outcome = Compared(BPF_OP(instruction.code), machine.a, other);
    if (outcome.value_or(true)) GoOn(at + 1 + instruction.jt, machine);
    if (!outcome.value_or(false)) GoOn(at + 1 + instruction.jf, machine);
  }

  Value Source(const sock_filter& instruction, const Machine& machine) const {
    switch (BPF_MODE(instruction.code)) {
      case BPF_IMM:
        return instruction.k;
      case BPF_ABS:
        return Loaded(instruction.k, call_);
      case BPF_LEN:
        return sizeof(seccomp_data);
      case BPF_MEM:
        return instruction.k < BPF_MEMWORDS ? machine.memory[instruction.k] : Value();
      default:
        return std::nullopt;
    }
  }

  void Execute(size_t at) {
    const sock_filter& instruction = program_[at];
    Machine machine = machines_[at];
    switch (BPF_CLASS(instruction.code)) {
      case BPF_LD:
        machine.a = Source(instruction, machine);
        break;
      case BPF_LDX:
        machine.x = Source(instruction, machine);
        break;
      case BPF_ST:
      case BPF_STX:
        if (instruction.k >= BPF_MEMWORDS) break;
        machine.memory[instruction.k] =
            BPF_CLASS(instruction.code) == BPF_ST ? machine.a : machine.x;
        break;
      case BPF_ALU:
        machine.a = Calculated(
            BPF_OP(instruction.code), machine.a,
            BPF_SRC(instruction.code) == BPF_X ? machine.x : Value(instruction.k));
        break;
      case BPF_JMP:
        return Jump(at, machine);
      case BPF_RET: {
        Value result =
            BPF_RVAL(instruction.code) == BPF_A ? machine.a : Value(instruction.k);
        lethal_ |= !result || IsLethal(*result);
        return;
      }
      case BPF_MISC:
        if (BPF_MISCOP(instruction.code) == BPF_TAX) machine.x = machine.a;
        if (BPF_MISCOP(instruction.code) == BPF_TXA) machine.a = machine.x;
        break;
    }
    GoOn(at + 1, machine);
  }

  const std::span<const sock_filter> program_;
  const long call_;
  std::vector<Machine> machines_;
  bool lethal_ = false;
};

// nullopt: the status could not be read.
std::optional<int> FiltersIn(const Procfs::Answer& status) {
  if (!status.ok() || status.text.empty()) return std::nullopt;
  if (StatusField(status.text, "Seccomp") != "2") return 0;
  int count = 0;
  absl::string_view text = StatusField(status.text, "Seccomp_filters");
  return absl::SimpleAtoi(text, &count) ? count : -1;
}

// The process that its PID namespace began with.
std::optional<int> FiltersOfFirst(const Process& process, const Procfs& procfs) {
  if (!process.in_inner_pid_namespace) return FiltersIn(procfs.Read(1, "status"));
  const std::string its = procfs.Link(process.pid, "ns/pid").text;
  if (its.empty()) return std::nullopt;
  for (pid_t pid : procfs.Pids()) {
    if (procfs.Link(pid, "ns/pid").text != its) continue;
    Procfs::Answer status = procfs.Read(pid, "status");
    absl::string_view numbers = StatusField(status.text, "NSpid");
    if (absl::EndsWith(numbers, "\t1")) return FiltersIn(status);
  }
  return std::nullopt;
}

// The first call that one of the filters kills for; nullopt: they could not be read.
std::optional<std::string> FirstKilled(const Process& process, pid_t tid,
                                       const ReadFilters& read) {
  auto programs = read(process.pid, tid);
  if (absl::IsNotFound(programs.status())) return "";  // a thread that has ended
  if (!programs.ok()) return std::nullopt;
  auto killed = [&](std::span<const abi::SystemCall> calls) -> std::string {
    for (const abi::SystemCall& call : calls) {
      for (const SeccompProgram& program : *programs) {
        if (MayKill(program, call.number)) return call.name;
      }
    }
    return "";
  };
  std::string first = killed(abi::kSystemCalls);
  if (first.empty() && process.uses_cuda()) first = killed(abi::kGpuSystemCalls);
  return first;
}

// One thread for all that have what they inherited, and each of the others.
std::optional<std::string> FirstKilled(const Process& process,
                                       std::optional<int> inherited,
                                       const ReadFilters& read) {
  bool one_was_read = false;
  for (const auto& [tid, count] : process.filters) {
    const bool is_inherited = count >= 0 && inherited == count;
    if (is_inherited && one_was_read) continue;
    std::optional<std::string> killed = FirstKilled(process, tid, read);
    if (!killed || !killed->empty()) return killed;
    one_was_read |= is_inherited;
  }
  return "";
}

}  // namespace

std::map<pid_t, int> CountFilters(pid_t pid, const Procfs& procfs) {
  std::map<pid_t, int> counts;
  for (pid_t tid : procfs.Threads(pid)) {
    auto count = FiltersIn(procfs.Read(pid, absl::StrCat("task/", tid, "/status")));
    if (count.value_or(0) != 0) counts[tid] = *count;
  }
  return counts;
}

Filters JudgeFilters(const Process& process, const Procfs& procfs,
                     const ReadFilters& read) {
  if (process.filters.empty()) return {};
  const std::optional<int> inherited = FiltersOfFirst(process, procfs);
  if (read) {
    if (auto killed = FirstKilled(process, inherited, read)) {
      return {killed->empty() ? Sandbox::kHarmless : Sandbox::kKills, *killed};
    }
  }
  for (const auto& [tid, count] : process.filters) {
    if (count < 0 || inherited != count) return {Sandbox::kOwn, ""};
  }
  return {Sandbox::kInherited, ""};
}

bool MayKill(std::span<const sock_filter> program, long call) {
  return Run(program, call).MayKill();
}

}  // namespace lull::attach
