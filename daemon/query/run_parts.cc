#include "daemon/query/run_parts.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "daemon/base/run_kinds.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

bool AtOneTime(const PartLife& a, const PartLife& b) {
  return a.start_ns <= b.end_ns && b.start_ns <= a.end_ns;
}

bool HaveARankInCommon(const PartLife& a, const PartLife& b) {
  return std::any_of(a.ranks.begin(), a.ranks.end(),
                     [&b](const auto& rank) { return b.ranks.contains(rank.first); });
}

bool MayBeOne(const PartLife& a, const PartLife& b) {
  return AtOneTime(a, b) && !a.ranks.empty() && !b.ranks.empty() && a.user == b.user &&
         a.ranks.begin()->second == b.ranks.begin()->second && !HaveARankInCommon(a, b);
}

using Whole = std::vector<const PartLife*>;

// `part` of the whole `from` may as well be one of `to`: it fits there beside those
// that are no other job's by its ranks, and these fit where it was.
bool MayMove(const PartLife& part, const Whole& from, const Whole& to) {
  auto is_rival = [&part](const PartLife* other) {
    return HaveARankInCommon(part, *other);
  };
  auto fits_instead = [&](const PartLife* rival) {
    return std::all_of(from.begin(), from.end(), [&](const PartLife* other) {
      return other == &part || MayBeOne(*rival, *other);
    });
  };
  bool has_company = false;
  for (const PartLife* other : to) {
    if (is_rival(other)) continue;
    if (!MayBeOne(part, *other)) return false;
    has_company = true;
  }
  return has_company && std::all_of(to.begin(), to.end(), [&](const PartLife* other) {
           return !is_rival(other) || fits_instead(other);
         });
}

// When it ended by CLOCK_REALTIME of its host, or went on at least.
uint64_t EndOfLife(const storage::JobRow& job, bool has_relay) {
  const uint64_t start_ns = job.info.start_ns();
  auto date = [&](uint64_t time_ns) {
    return job.info.start_realtime_ns() + (std::max(time_ns, start_ns) - start_ns);
  };
  if (job.ended) return date(job.end.end_ns());
  if (has_relay) return UINT64_MAX;
  // Its host died, or is out of reach. It may have recorded nothing for some time.
  return std::max(date(job.last_event_ns), job.touched_ns);
}

bool HasAllRanks(const std::vector<PartLife>& parts,
                 const std::vector<size_t>& members) {
  size_t ranks = 0;
  for (size_t member : members) ranks += parts[member].ranks.size();
  const std::map<int32_t, int32_t>& some = parts[members.front()].ranks;
  return !some.empty() && ranks == static_cast<size_t>(some.begin()->second);
}

}  // namespace

std::vector<size_t> Wholes(const std::vector<PartLife>& parts, bool whole_or_none) {
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
  if (!whole_or_none) return numbers;
  size_t next = 0;
  for (const std::vector<size_t>& members : wholes) {
    const bool is_whole = HasAllRanks(parts, members);
    for (size_t member : members) numbers[member] = is_whole ? next : next++;
    if (is_whole) ++next;
  }
  return numbers;
}

std::vector<bool> Doubts(const std::vector<PartLife>& parts,
                         const std::vector<size_t>& wholes) {
  std::vector<Whole> all(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) all[wholes[i]].push_back(&parts[i]);
  std::vector<bool> doubted(parts.size());  // by number of a whole
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t other = 0; other < all.size(); ++other) {
      if (other == wholes[i] || !MayMove(parts[i], all[wholes[i]], all[other]))
        continue;
      doubted[wholes[i]] = doubted[other] = true;
    }
  }
  std::vector<bool> doubts;
  for (size_t whole : wholes) doubts.push_back(doubted[whole]);
  return doubts;
}

struct RunParts::Member {
  storage::JobRow job;
  PartLife life;
  size_t whole = 0;
  bool in_doubt = false;
};

struct RunParts::Run {
  std::vector<Member> members;  // in the order of their starts
  std::vector<std::vector<size_t>> wholes;
  absl::flat_hash_map<int64_t, size_t> by_job;
};

RunParts::RunParts(storage::StoreReader& reader, HasRelay has_relay)
    : reader_(reader), has_relay_(std::move(has_relay)) {}

RunParts::~RunParts() = default;

absl::StatusOr<PartLife> RunParts::LifeOf(const storage::JobRow& job) const {
  PartLife life;
  life.start_ns = job.info.start_realtime_ns();
  life.end_ns = EndOfLife(job, has_relay_(job.info.id()));
  life.user = job.info.user();
  LULL_ASSIGN_OR_RETURN(auto processes,
                        reader_.catalogue().All<storage::ProcessRow>(job.id));
  for (const storage::ProcessRow& process : processes) {
    if (process.info.rank() < 0 || process.info.worker_of() != 0) continue;
    life.ranks.emplace(process.info.rank(), process.info.world_size());
  }
  return life;
}

absl::StatusOr<const RunParts::Run*> RunParts::Load(const std::string& run) {
  std::unique_ptr<Run>& loaded = runs_[run];
  if (loaded != nullptr) return loaded.get();
  auto fresh = std::make_unique<Run>();
  LULL_ASSIGN_OR_RETURN(auto jobs, reader_.catalogue().JobsOfRun(run));
  std::vector<PartLife> lives;
  for (storage::JobRow& job : jobs) {
    absl::StatusOr<PartLife> life = LifeOf(job);
    // One whose rows are damaged is a part of nothing, and harms no other.
    if (absl::IsDataLoss(life.status())) life = PartLife();
    LULL_RETURN_IF_ERROR(life.status());
    fresh->by_job[job.id] = fresh->members.size();
    fresh->members.push_back({std::move(job), *life});
    lives.push_back(*std::move(life));
  }
  const std::vector<size_t> wholes = Wholes(lives, absl::StartsWith(run, kMasterRun));
  const std::vector<bool> doubts = Doubts(lives, wholes);
  for (size_t i = 0; i < wholes.size(); ++i) {
    fresh->members[i].whole = wholes[i];
    fresh->members[i].in_doubt = doubts[i];
    fresh->wholes.resize(std::max(fresh->wholes.size(), wholes[i] + 1));
    fresh->wholes[wholes[i]].push_back(i);
  }
  loaded = std::move(fresh);
  return loaded.get();
}

// nullptr: it is a part of no run.
absl::StatusOr<const RunParts::Member*> RunParts::Find(const storage::JobRow& job,
                                                       const Run** run) {
  if (job.run.empty()) return nullptr;
  LULL_ASSIGN_OR_RETURN(*run, Load(job.run));
  const auto found = (*run)->by_job.find(job.id);
  return found == (*run)->by_job.end() ? nullptr : &(*run)->members[found->second];
}

absl::StatusOr<std::vector<storage::JobRow>> RunParts::Of(const storage::JobRow& job) {
  const Run* run = nullptr;
  LULL_ASSIGN_OR_RETURN(const Member* own, Find(job, &run));
  if (own == nullptr || own->in_doubt) return std::vector<storage::JobRow>{job};
  std::vector<storage::JobRow> parts;
  for (size_t i : run->wholes[own->whole]) parts.push_back(run->members[i].job);
  return parts;
}

absl::StatusOr<bool> RunParts::IsInDoubt(const storage::JobRow& job) {
  const Run* run = nullptr;
  LULL_ASSIGN_OR_RETURN(const Member* own, Find(job, &run));
  return own != nullptr && own->in_doubt;
}

absl::StatusOr<storage::JobRow> RunParts::WithRank(const storage::JobRow& job,
                                                   int32_t rank) {
  const Run* run = nullptr;
  LULL_ASSIGN_OR_RETURN(const Member* own, Find(job, &run));
  if (own == nullptr || own->in_doubt) return job;
  for (size_t i : run->wholes[own->whole]) {
    if (run->members[i].life.ranks.contains(rank)) return run->members[i].job;
  }
  return job;
}

}  // namespace lull::query
