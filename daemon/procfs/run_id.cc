#include "daemon/procfs/run_id.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/text.h"
#include "daemon/procfs/rank.h"

namespace lull {
namespace {

constexpr size_t kLongestId = 256;

std::string Named(absl::string_view kind, absl::string_view id) {
  if (id.empty()) return "";
  return absl::StrCat(kind, CleanText(std::string(id), kLongestId));
}

// Without a step it is the script of sbatch, which is no rank of anything.
std::string SlurmRun(absl::string_view environment) {
  absl::string_view job = VariableIn(environment, "SLURM_JOB_ID");
  absl::string_view step = VariableIn(environment, "SLURM_STEP_ID");
  if (job.empty() || step.empty()) return "";
  return Named("slurm:", absl::StrCat(VariableIn(environment, "SLURM_CLUSTER_NAME"),
                                      ".", job, ".", step));
}

// Where the ranks of PyTorch meet, which all launchers tell them that name no run:
// accelerate, DeepSpeed, Kubeflow's PyTorchJob, JobSet, torchrun without --rdzv-id. Of
// a host alone it says nothing: each has a localhost.
std::string MasterOf(absl::string_view environment) {
  const absl::string_view host = VariableIn(environment, "MASTER_ADDR");
  const absl::string_view port = VariableIn(environment, "MASTER_PORT");
  const Rank rank = ReadRank(environment);
  const bool is_one_of_some =
      rank.rank >= 0 && rank.rank < rank.world_size && rank.world_size > 1;
  if (!is_one_of_some || host.empty() || port.empty()) return "";
  if (absl::StartsWithIgnoreCase(host, "localhost") || absl::StartsWith(host, "127.") ||
      host == "::1" || host == "0.0.0.0") {
    return "";
  }
  return Named(kMasterRun, absl::StrCat(host, ":", port));
}

}  // namespace

std::string ReadRunId(absl::string_view environment) {
  std::string id = GivenRunId(VariableIn(environment, "LULL_RUN_ID"));
  if (!id.empty()) return id;
  absl::string_view torchrun = VariableIn(environment, "TORCHELASTIC_RUN_ID");
  if (!torchrun.empty() && torchrun != "none") return Named("torchrun:", torchrun);
  // 128 random bits of an mpirun. Before Slurm: of its ranks in an allocation those on
  // other nodes are below a step, and those beside mpirun itself are not.
  id = Named("ompi:", VariableIn(environment, "OMPI_MCA_orte_precondition_transports"));
  if (!id.empty()) return id;
  id = SlurmRun(environment);
  if (!id.empty()) return id;
  constexpr struct {
    const char* kind;
    const char* variable;
  } kOthers[] = {
      {"pmix:", "PMIX_NAMESPACE"},  // may recur
      {"pmi:", "PMI_JOBID"},
  };
  for (const auto& other : kOthers) {
    id = Named(other.kind, VariableIn(environment, other.variable));
    if (!id.empty()) return id;
  }
  return MasterOf(environment);
}

std::string GivenRunId(absl::string_view id) { return Named(kGivenRun, id); }

}  // namespace lull
