// What /proc says about one process. Only facts; role.h and verdict.h decide what
// follows from them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/attach/examine/mapped_files.h"
#include "daemon/attach/examine/program.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/rank.h"

namespace lull::attach {

struct Ids {  // users or groups
  uint32_t real = 0;
  uint32_t effective = 0;
  uint32_t saved = 0;
};

// How a namespace of the process relates to ours.
enum class Namespace {
  kUnknown,  // it may not be looked at
  kOurs,
  kOther,
  kBelowOurs,  // of user namespaces: one that was made in ours, or below
};

enum class SeccompMode { kOff, kStrict, kFilter };

struct Process {
  // Everybody may know:
  pid_t pid = 0;
  bool exists = false;  // false: nothing else is known
  std::string name;     // at most 15 bytes, and the process may choose it
  std::vector<std::string> arguments;
  char state = '?';  // as in ps: R, S, D, T, t, Z, X, I
  pid_t parent = 0;
  pid_t tracer = 0;  // 0 = none
  std::string tracer_name;
  Ids users;
  Ids groups;
  std::string user;          // name of the effective user, or its number
  uint64_t start_ticks = 0;  // with the pid, the identity of a process
  uint64_t start_realtime_ns = 0;
  int threads = 0;
  bool kernel_thread = false;
  bool dumpable = true;  // false: the kernel shields it even from its own user
  bool no_new_privs = false;
  bool shadow_stack = false;
  bool in_inner_pid_namespace = false;  // it has another pid for itself
  SeccompMode seccomp = SeccompMode::kOff;
  std::map<pid_t, int> filters;  // of threads that have seccomp filters (CountFilters)
  uint64_t capabilities = 0;     // permitted

  // Known only of a process that we may look into:
  bool readable = false;
  std::string executable;  // as the process sees it
  Program program;
  MappedFiles files;
  std::string glibc_version;     // "2.36"; "" = not known, or no glibc
  bool is_python = false;        // judged by its name alone when not readable
  bool gpu_monitor = false;      // it holds the NVIDIA driver's control device open
  std::vector<int> gpu_devices;  // /dev/nvidiaN that it holds open, ascending
  Rank rank;
  bool preloaded = false;  // its environment named liblull.so when it started
  Namespace pid_namespace = Namespace::kUnknown;
  Namespace mount_namespace = Namespace::kUnknown;
  Namespace user_namespace = Namespace::kUnknown;
  Namespace network_namespace = Namespace::kUnknown;
  bool same_root = false;  // "/" is the same folder for it and for us
  // Where the kernel put code and stack: equal in a fork and its parent, not after an
  // exec. 0 = not known.
  uint64_t code_start = 0;
  uint64_t stack_start = 0;

  // It can run work of its own on a GPU, or has: CUDA is loaded. NVML alone
  // (nvidia-smi, exporters of metrics) is not work.
  bool uses_cuda() const { return files.cuda_runtime || files.cuda_driver; }
};

// Reads everything, in about a millisecond; a process that ends meanwhile leaves out
// what came too late. Never blocks, changes nothing.
Process ReadProcess(pid_t pid, const Procfs& procfs);

// The name of a user, or the number of one that has none.
std::string UserName(uint32_t uid);

}  // namespace lull::attach
