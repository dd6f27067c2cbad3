#include "daemon/attach/examine/examination.h"

#include <utility>

#include "daemon/attach/examine/foothold.h"
#include "daemon/attach/examine/probe.h"
#include "daemon/attach/examine/process_table.h"

namespace lull::attach {
namespace {

bool IsWorthProbing(const Process& process) {
  return process.exists && !process.kernel_thread && process.tracer == 0 &&
         (process.state == 'R' || process.state == 'S' || process.state == 'D');
}

Examination ExamineIn(ProcessTable& table, const Viewpoint& view, pid_t pid,
                      const ExamineOptions& options) {
  Examination examination;
  examination.process = table.Get(pid);
  const Process& process = examination.process;
  const Process* parent = process.exists ? &table.Get(process.parent) : nullptr;
  examination.role = RoleOf(process, parent);
  Circumstances circumstances;
  circumstances.is_descendant = table.IsBelow(pid, view.pid);
  if (process.readable && !SeesOurFiles(process)) {
    circumstances.foothold = FindFoothold(process, table.procfs()).status();
  }
  if (options.probe && IsWorthProbing(process)) circumstances.probe = ProbePtrace(pid);
  circumstances.filters = JudgeFilters(process, table.procfs(), options.read_filters);
  circumstances.filters_readable = options.filters_readable;
  Verdict verdict = Judge(process, view, circumstances);
  examination.obstacles = std::move(verdict.obstacles);
  examination.notes = std::move(verdict.notes);
  return examination;
}

}  // namespace

Examination Examine(pid_t pid, const ExamineOptions& options) {
  ProcessTable table{Procfs(options.proc)};
  return ExamineIn(table, ReadViewpoint(table.procfs()), pid, options);
}

std::vector<Examination> ExamineAll(const ExamineOptions& options) {
  ProcessTable table{Procfs(options.proc)};
  Viewpoint view = ReadViewpoint(table.procfs());
  std::vector<Examination> all;
  for (pid_t pid : table.procfs().Pids()) {
    const Process& process = table.Get(pid);
    if (pid == view.pid || !process.exists || process.kernel_thread) continue;
    all.push_back(ExamineIn(table, view, pid, options));
  }
  return all;
}

bool IsCandidate(const Examination& examination) {
  const Process& process = examination.process;
  return process.is_python || process.uses_cuda() || !process.gpu_devices.empty();
}

}  // namespace lull::attach
