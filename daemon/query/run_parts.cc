#include "daemon/query/run_parts.h"

#include <algorithm>
#include <utility>

#include "daemon/base/status.h"

namespace lull::query {
namespace {

bool AtOneTime(const PartLife& a, const PartLife& b) {
  return a.start_ns <= b.end_ns && b.start_ns <= a.end_ns;
}

bool MayBeOne(const PartLife& a, const PartLife& b) {
  if (a.ranks.empty() || b.ranks.empty() || a.user != b.user || !AtOneTime(a, b)) {
    return false;
  }
  if (a.ranks.begin()->second != b.ranks.begin()->second) return false;
  return std::none_of(a.ranks.begin(), a.ranks.end(),
                      [&b](const auto& rank) { return b.ranks.contains(rank.first); });
}

absl::StatusOr<PartLife> LifeOf(storage::StoreReader& reader,
                                const storage::JobRow& job) {
  PartLife life;
  life.start_ns = job.info.start_realtime_ns();
  const uint64_t start_ns = job.info.start_ns();
  life.end_ns = !job.ended
                    ? UINT64_MAX
                    : life.start_ns + (std::max(job.end.end_ns(), start_ns) - start_ns);
  life.user = job.info.user();
  LULL_ASSIGN_OR_RETURN(auto processes,
                        reader.catalogue().All<storage::ProcessRow>(job.id));
  for (const storage::ProcessRow& process : processes) {
    if (process.info.rank() < 0 || process.info.worker_of() != 0) continue;
    life.ranks.emplace(process.info.rank(), process.info.world_size());
  }
  return life;
}

}  // namespace

std::vector<size_t> Wholes(const std::vector<PartLife>& parts) {
  std::vector<std::vector<size_t>> wholes;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto whole = std::find_if(wholes.begin(), wholes.end(), [&](const auto& members) {
      return std::all_of(members.begin(), members.end(), [&](size_t member) {
        return MayBeOne(parts[member], parts[i]);
      });
    });
    if (whole == wholes.end()) whole = wholes.emplace(wholes.end());
    whole->push_back(i);
    numbers.push_back(static_cast<size_t>(whole - wholes.begin()));
  }
  return numbers;
}

absl::StatusOr<std::vector<storage::JobRow>> PartsOf(storage::StoreReader& reader,
                                                     const storage::JobRow& job) {
  if (job.run.empty()) return std::vector<storage::JobRow>{job};
  LULL_ASSIGN_OR_RETURN(auto jobs, reader.catalogue().JobsOfRun(job.run));
  std::vector<PartLife> lives;
  for (const storage::JobRow& other : jobs) {
    absl::StatusOr<PartLife> life = LifeOf(reader, other);
    // One whose rows are damaged is a part of nothing, and harms no other.
    if (absl::IsDataLoss(life.status())) life = PartLife();
    LULL_RETURN_IF_ERROR(life.status());
    lives.push_back(*std::move(life));
  }
  const std::vector<size_t> wholes = Wholes(lives);
  const auto own = std::find_if(jobs.begin(), jobs.end(),
                                [&](const auto& other) { return other.id == job.id; });
  if (own == jobs.end()) return std::vector<storage::JobRow>{job};
  const size_t whole = wholes[static_cast<size_t>(own - jobs.begin())];
  std::vector<storage::JobRow> parts;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (wholes[i] == whole) parts.push_back(std::move(jobs[i]));
  }
  return parts;
}

absl::StatusOr<storage::JobRow> PartWithRank(storage::StoreReader& reader,
                                             const storage::JobRow& job, int32_t rank) {
  LULL_ASSIGN_OR_RETURN(auto parts, PartsOf(reader, job));
  for (const storage::JobRow& part : parts) {
    if (parts.size() == 1) break;
    LULL_ASSIGN_OR_RETURN(PartLife life, LifeOf(reader, part));
    if (life.ranks.contains(rank)) return part;
  }
  return job;
}

}  // namespace lull::query
