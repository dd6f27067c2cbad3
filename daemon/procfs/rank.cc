#include "daemon/procfs/rank.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace lull {
namespace {

struct Launcher {
  const char* rank;
  const char* local_rank;
  const char* world_size;
};
constexpr Launcher kLaunchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

int NumberIn(absl::string_view environment, const char* name) {
  absl::string_view value = VariableIn(environment, name);
  int number;
  bool is_number = absl::SimpleAtoi(value, &number);
  return is_number && number >= 0 ? number : -1;
}

}  // namespace

absl::string_view VariableIn(absl::string_view environment, absl::string_view name) {
  while (!environment.empty()) {
    absl::string_view entry = environment.substr(0, environment.find('\0'));
    if (entry.size() > name.size() && entry[name.size()] == '=' &&
        entry.substr(0, name.size()) == name) {
      return entry.substr(name.size() + 1);
    }
    environment.remove_prefix(std::min(environment.size(), entry.size() + 1));
  }
  return {};
}

Rank ReadRank(absl::string_view environment) {
  for (const Launcher& launcher : kLaunchers) {
    Rank rank;
    rank.rank = NumberIn(environment, launcher.rank);
    if (rank.rank < 0) continue;
    rank.local_rank = NumberIn(environment, launcher.local_rank);
    rank.world_size = NumberIn(environment, launcher.world_size);
    return rank;
  }
  return {};
}

}  // namespace lull
