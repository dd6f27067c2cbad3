// From the process that the user knows to those that train.
#pragma once

#include <sys/types.h>

#include <vector>

#include "daemon/procfs/procfs.h"

namespace lull::attach {

// The processes to attach to when the user names `root`: a launcher (torchrun, its
// elastic agent, accelerate, deepspeed, mpirun, a shell script), or the training
// itself. Parents before children; empty when there is none. The rules, in this order:
//
//  1. GPU work: every process from `root` down that has CUDA loaded, except launchers,
//     helpers, and fork children of Python (role.h).
//  2. CPU ranks: every ordinary Python process with a rank in its environment, unless a
//     process above it has been chosen for the same rank (it is a tool that a rank
//     started, and has inherited the variable), or one below it does GPU work for that
//     rank (it only wraps the script).
//  3. Where neither finds any: the first ordinary Python process on each way down.
//  4. Where there is none: `root`, if it is ordinary and has no children. A shell or
//     mpirun that has started nothing to watch is not worth it.
//
// A process whose memory map we may not read cannot be seen to load CUDA; it is judged
// by its command line alone. Ranks that another daemon starts (slurmstepd below no
// srun, another host's) are not below `root`: name them, or attach to each host's
// launcher.
std::vector<pid_t> FindWorkers(pid_t root, const Procfs& procfs = Procfs());

}  // namespace lull::attach
