#include "daemon/query/job_lookup.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/job_id.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

using storage::JobRow;

constexpr size_t kMaxNamed = 5;
constexpr size_t kShownIdDigits = 12;

std::string NameJobs(const std::vector<JobRow>& jobs) {
  size_t count = std::min(jobs.size(), kMaxNamed);
  std::string text =
      absl::StrJoin(jobs.begin(), jobs.begin() + static_cast<ptrdiff_t>(count), ", ",
                    [](std::string* out, const JobRow& job) {
                      absl::StrAppend(out, job.info.id().substr(0, kShownIdDigits));
                      if (!job.info.name().empty())
                        absl::StrAppend(out, " (", job.info.name(), ")");
                    });
  return count < jobs.size() ? absl::StrCat(text, ", …") : text;
}

// When the collector got it or, of one that it saw running, when it began. An imported
// trace may be years old: who has just imported it means it.
uint64_t Came(const JobRow& job) {
  return job.info.has_imported() ? job.touched_ns : job.info.start_realtime_ns();
}

void SortByComing(std::vector<JobRow>* jobs) {
  std::stable_sort(jobs->begin(), jobs->end(),
                   [](const JobRow& a, const JobRow& b) { return Came(a) > Came(b); });
}

absl::Status Damaged(const JobRow& job) {
  return absl::DataLossError(
      absl::StrCat("the row of job ", job.info.id().substr(0, kShownIdDigits),
                   " in the database is damaged; name another job"));
}

absl::StatusOr<JobRow> FindNewest(storage::StoreReader& reader) {
  std::vector<JobRow> damaged;
  LULL_ASSIGN_OR_RETURN(auto jobs, reader.catalogue().LatestJobs(&damaged));
  uint64_t began = 0;
  for (const auto* rows : {&jobs, &damaged}) {
    for (const JobRow& job : *rows) {
      began = std::max(began, job.info.start_realtime_ns());
    }
  }
  SortByComing(&jobs);
  if (jobs.empty() || Came(jobs.front()) < began) {
    // A trace from the future began last, and came before others.
    damaged.clear();
    LULL_ASSIGN_OR_RETURN(jobs, reader.catalogue().Jobs(0, &damaged));
    SortByComing(&jobs);
  }
  SortByComing(&damaged);
  if (!damaged.empty() &&
      (jobs.empty() || Came(damaged.front()) > Came(jobs.front()))) {
    return Damaged(damaged.front());
  }
  if (jobs.empty()) return absl::NotFoundError("there are no jobs yet");
  return jobs.front();
}

absl::Status NoSuchJob(storage::StoreReader& reader, const std::string& text) {
  LULL_ASSIGN_OR_RETURN(auto jobs, reader.catalogue().Jobs(0));
  if (jobs.empty()) return absl::NotFoundError("there are no jobs yet");
  SortByComing(&jobs);
  return absl::NotFoundError(
      absl::StrCat("no job \"", text, "\"; the newest are ", NameJobs(jobs)));
}

absl::Status NameAndId(const JobRow& named, const JobRow& other,
                       const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is the name of job ", named.info.id().substr(0, kShownIdDigits),
      " and the beginning of the id of job ", other.info.id().substr(0, kShownIdDigits),
      "; say more of the id"));
}

// Also one whose row is damaged, which is then what is left of it.
absl::StatusOr<JobRow> FindRow(storage::StoreReader& reader, const std::string& text,
                               bool* is_damaged) {
  *is_damaged = false;
  if (text.empty()) return FindNewest(reader);
  std::vector<JobRow> damaged;
  LULL_ASSIGN_OR_RETURN(auto jobs, reader.catalogue().JobsWith(text, &damaged));
  SortByComing(&jobs);
  std::vector<JobRow> candidates;
  auto add_candidates = [&](const std::vector<JobRow>& rows) {
    if (text.size() < kFewestJobIdDigits) return;  // that may be anything
    for (const JobRow& job : rows) {
      if (absl::StartsWith(job.info.id(), text)) candidates.push_back(job);
    }
  };
  add_candidates(jobs);
  const size_t sound = candidates.size();
  add_candidates(damaged);
  // Whoever may record jobs chooses their names, also one that is an id of another job,
  // which may be with another collector.
  const auto named =
      IsJobId(text) ? jobs.end()
                    : std::find_if(jobs.begin(), jobs.end(), [&](const JobRow& job) {
                        return job.info.name() == text;  // newest first
                      });
  if (named != jobs.end()) {
    for (const JobRow& other : candidates) {
      if (other.info.id() != named->info.id()) return NameAndId(*named, other, text);
    }
    return *named;
  }
  if (candidates.empty()) return NoSuchJob(reader, text);
  if (candidates.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is the beginning of ", candidates.size(),
                     " job ids: ", NameJobs(candidates)));
  }
  *is_damaged = sound == 0;
  return candidates.front();
}

}  // namespace

absl::StatusOr<JobRow> FindJob(storage::StoreReader& reader, const std::string& text) {
  bool is_damaged = false;
  LULL_ASSIGN_OR_RETURN(JobRow job, FindRow(reader, text, &is_damaged));
  if (is_damaged) return Damaged(job);
  return job;
}

absl::StatusOr<JobRow> FindJobToMark(storage::StoreReader& reader,
                                     const std::string& text) {
  bool is_damaged = false;
  return FindRow(reader, text, &is_damaged);
}

}  // namespace lull::query
