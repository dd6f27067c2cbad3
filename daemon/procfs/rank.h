// A process's place in a distributed job, as launchers write it into the environment.
#pragma once

#include "absl/strings/string_view.h"

namespace lull {

// -1: not told.
struct Rank {
  int rank = -1;
  int local_rank = -1;
  int world_size = -1;
};

// `environment`: "NAME=value" strings, each ended by a zero. All three numbers come
// from the first of torchrun, Open MPI, MPICH and Slurm that names a rank: under `srun
// torchrun` the innermost launcher is right.
Rank ReadRank(absl::string_view environment);

// The value of a variable; empty when there is none.
absl::string_view VariableIn(absl::string_view environment, absl::string_view name);

}  // namespace lull
