#include "daemon/attach/examine/role.h"

#include <vector>

#include "preload/entry/process_kind.h"

namespace lull::attach {
namespace {

constexpr char kDataWorkerName[] = "pt_data_worker";

ProcessKind KindOf(const Process& process) {
  std::vector<const char*> arguments;
  for (const std::string& argument : process.arguments) {
    arguments.push_back(argument.c_str());
  }
  arguments.push_back(nullptr);
  return classify_process(static_cast<int>(process.arguments.size()), arguments.data());
}

bool SameLayout(const Process& a, const Process& b) {
  return a.stack_start == b.stack_start && a.code_start == b.code_start;
}

bool IsForkOf(const Process& process, const Process& parent) {
  if (process.parent != parent.pid || process.arguments.empty() ||
      process.executable != parent.executable) {
    return false;
  }
  bool told = process.stack_start != 0 && parent.stack_start != 0;
  if (process.arguments == parent.arguments) {
    return !told || SameLayout(process, parent);
  }
  return told && SameLayout(process, parent);  // it has given itself another title
}

}  // namespace

Role RoleOf(const Process& process, const Process* parent) {
  if (process.name == kDataWorkerName) return Role::kForkChild;
  if (!process.is_python) return Role::kOrdinary;
  ProcessKind kind = KindOf(process);
  if (kind == ProcessKind::kLauncher) return Role::kLauncher;
  bool is_fork = parent != nullptr && parent->is_python && IsForkOf(process, *parent);
  bool driver_inherited = is_fork && parent->files.cuda_driver;
  if (process.files.cuda_driver && !driver_inherited) return Role::kOrdinary;
  if (kind == ProcessKind::kHelper) return Role::kHelper;
  return is_fork ? Role::kForkChild : Role::kOrdinary;
}

}  // namespace lull::attach
