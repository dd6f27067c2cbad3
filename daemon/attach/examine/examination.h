// Looks at processes from outside: what they are, and whether `lull attach` can work on
// them. Reads /proc and ELF headers, which takes about a millisecond for each process.
// Never stops, signals or changes a process; one may vanish meanwhile.
//
//   Examination seen = Examine(pid, {.probe = true});
//   for (const Obstacle& obstacle : seen.obstacles)
//     PrintError("attach", obstacle.what + " " + obstacle.advice);
//   if (seen.CanBeAttached()) ...  MakeFoothold (foothold.h), then inject
//
// There is nothing to watch in a launcher: see FindWorkers (process_tree.h).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "daemon/attach/examine/process.h"
#include "daemon/attach/examine/role.h"
#include "daemon/attach/examine/seccomp.h"
#include "daemon/attach/examine/verdict.h"

namespace lull::attach {

struct Examination {
  Process process;
  Role role = Role::kOrdinary;
  std::vector<Obstacle> obstacles;  // each of them keeps lull from attaching
  std::vector<Obstacle> notes;      // good to know, no hindrance

  bool CanBeAttached() const { return obstacles.empty(); }
};

struct ExamineOptions {
  // Also trace it really, for an instant (probe.h): finds what only the kernel knows,
  // such as a seccomp filter around us.
  bool probe = false;
  // Also stop threads that have seccomp filters for an instant, to read these.
  ReadFilters read_filters = nullptr;
  // Whether `lull attach` could read them: without `read_filters` they are left to it.
  bool filters_readable = false;
  std::string proc = "/proc";  // another one: for tests
};

Examination Examine(pid_t pid, const ExamineOptions& options = {});

// All processes but ourselves and the kernel's threads, by PID.
std::vector<Examination> ExamineAll(const ExamineOptions& options = {});

// Worth a line in a list: it is Python, loads CUDA, or holds a GPU. Helpers and fork
// children are candidates as well; leave them out by their role.
bool IsCandidate(const Examination& examination);

}  // namespace lull::attach
