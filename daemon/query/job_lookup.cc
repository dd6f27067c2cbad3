#include "daemon/query/job_lookup.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

}  // namespace

absl::StatusOr<JobRow> FindJob(storage::StoreReader& reader, const std::string& text) {
  LULL_ASSIGN_OR_RETURN(std::vector<JobRow> jobs, reader.catalogue().Jobs(0));
  if (jobs.empty()) return absl::NotFoundError("there are no jobs yet");
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobRow& a, const JobRow& b) { return Came(a) > Came(b); });
  if (text.empty()) return jobs.front();
  for (const JobRow& job : jobs) {  // newest first
    if (job.info.name() == text || job.info.id() == text) return job;
  }
  std::vector<JobRow> candidates;
  for (const JobRow& job : jobs) {
    if (absl::StartsWith(job.info.id(), text)) candidates.push_back(job);
  }
  if (candidates.size() == 1) return candidates.front();
  if (candidates.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no job \"", text, "\"; the newest are ", NameJobs(jobs)));
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is the beginning of ",
                                                 candidates.size(),
                                                 " job ids: ", NameJobs(candidates)));
}

}  // namespace lull::query
