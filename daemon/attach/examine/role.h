// What a process is there for, by which `lull attach` and `lull ps` choose. Pure.
#pragma once

#include "daemon/attach/examine/process.h"

namespace lull::attach {

enum class Role {
  // Does work of its own: the training script, a rank, a C++ program.
  kOrdinary,
  // torchrun and its like: starts the ranks and waits.
  kLauncher,
  // A process of multiprocessing (spawned child, fork server, resource tracker) or a
  // compile worker, that has made no CUDA call.
  kHelper,
  // A fork of a Python process that has made no CUDA call of its own: DataLoader
  // workers, by default.
  kForkChild,
};

// `parent` is null when the parent is not known. The rules:
//  * A process that PyTorch has named "pt_data_worker" is a DataLoader worker.
//  * A command line is judged by preload/entry/process_kind.h, as in the process
//  itself.
//  * A child of a Python process is its fork when it runs the same executable with the
//    same command line, and the kernel did not lay it out anew, as it does in an exec.
//  * CUDA cannot be used in a fork of a process that used it already. So a fork whose
//    parent has the CUDA driver loaded does no work on the GPU, whatever it inherited;
//    and one that has it although its parent has not loaded it itself: it is a rank of
//    multiprocessing (kOrdinary). The same goes for spawned children.
Role RoleOf(const Process& process, const Process* parent);

}  // namespace lull::attach
