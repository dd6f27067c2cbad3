#include "daemon/query/rank_census.h"

#include "absl/strings/str_cat.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

// Each is compared with each other one.
constexpr int kMostRanks = 1024;

}  // namespace

absl::Status AreAllRecorded(const storage::JobRow& part,
                            const storage::ProcessRow& rank) {
  if (!AreStepsSampled(part, {rank})) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "its steps were sampled, by each rank for itself: what ranks wait for each "
      "other on the host is told of jobs that ran with --sample-steps=false");
}

absl::Status AreAll(const storage::JobRow& job,
                    const std::vector<const v1::ProcessInfo*>& ranks) {
  if (job.info.has_imported() && ranks.empty()) {
    return absl::FailedPreconditionError(
        "no rank of this trace has a kernel of NCCL, and what their hosts waited for "
        "cannot be compared: nobody knows how far their clocks are apart");
  }
  if (ranks.empty()) {
    return absl::FailedPreconditionError(
        "no process waited for another rank: collectives of NCCL are known where the "
        "GPU "
        "was traced, and waits of gloo and c10d on the host; those of MPI are not");
  }
  const v1::ProcessInfo& first = *ranks.front();
  if (first.rank() < 0) {
    return absl::FailedPreconditionError(
        "processes wait for other ranks, and do not tell theirs: no launcher has put "
        "RANK or the like into their environment");
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    const v1::ProcessInfo& info = *ranks[i];
    if (i > 0 && info.rank() == ranks[i - 1]->rank()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", info.rank(),
                       " was more than one process: restarts are not told apart"));
    }
    if (info.world_size() != first.world_size()) {
      return absl::FailedPreconditionError(
          "ranks do not agree on how many they are (WORLD_SIZE)");
    }
  }
  if (first.world_size() > kMostRanks) {
    return absl::FailedPreconditionError(
        absl::StrCat("lull compares ", kMostRanks, " ranks at most, and these are ",
                     first.world_size(), " (WORLD_SIZE)"));
  }
  if (first.world_size() == 0) {
    return absl::FailedPreconditionError(
        "nobody knows how many ranks there are: no launcher has put WORLD_SIZE or "
        "the like into their environment");
  }
  if (static_cast<size_t>(first.world_size()) != ranks.size() || ranks.size() < 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        ranks.size(), " of ", first.world_size(),
        " ranks waited in what lull has recorded here: whom they waited for may be "
        "among the others"));
  }
  if (ranks.back()->rank() >= first.world_size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", ranks.back()->rank(), " is none of ", first.world_size(),
                     " ranks (WORLD_SIZE)"));
  }
  return absl::OkStatus();
}

}  // namespace lull::query
