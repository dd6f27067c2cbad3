#include "cli/render/ps_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lull {

std::string CommandOf(const attach::Process& process) {
  if (process.arguments.empty()) return absl::StrCat("[", process.name, "]");
  return absl::StrJoin(process.arguments, " ");
}

std::string ProgramWords(const attach::Process& process) {
  if (process.is_python) {
    const std::string& version = process.files.python_version;
    return version.empty() ? "Python" : absl::StrCat("Python ", version);
  }
  return process.readable ? "native" : "-";
}

std::string RankWords(const Rank& rank) {
  if (rank.rank < 0) return "-";
  if (rank.world_size < 0) return absl::StrCat(rank.rank);
  return absl::StrCat(rank.rank, " of ", rank.world_size);
}

std::string GpuWords(const attach::Process& process) {
  if (!process.gpu_devices.empty()) return absl::StrJoin(process.gpu_devices, ",");
  return process.uses_cuda() ? "CUDA" : "-";
}

const char* RoleId(attach::Role role) {
  switch (role) {
    case attach::Role::kOrdinary:
      return "ordinary";
    case attach::Role::kLauncher:
      return "launcher";
    case attach::Role::kHelper:
      return "helper";
    case attach::Role::kForkChild:
      return "fork_child";
  }
  return "ordinary";
}

}  // namespace lull
