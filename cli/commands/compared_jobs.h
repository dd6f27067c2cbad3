// What the verbs that compare jobs ask the collector.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/collector_client.h"
#include "daemon/compare/compare.h"

namespace lull {

// The two sides of a comparison: jobs by id or name, "A1,A2", or by tag, "tag:TAG". A
// comma of a name is "\,", and a name that begins with "tag:" begins with "\tag:" here.
struct Sides {
  std::vector<std::string> a;
  std::vector<std::string> b;
};
// INVALID_ARGUMENT: an empty name.
absl::StatusOr<std::vector<std::string>> JobsOf(const std::string& list);

// With the ids of all jobs that have TAG, the earlier first, in place of "tag:TAG".
// NOT_FOUND if there are none, DATA_LOSS if the row of one of them is damaged. For who
// only changes marks, damaged ones come first.
absl::StatusOr<std::vector<std::string>> WithoutTags(CollectorClient& client,
                                                     std::vector<std::string> jobs,
                                                     bool with_damaged = false);

// Asks about all runs of both sides; which steps are compared is found here.
// INVALID_ARGUMENT if a word stands there twice, FAILED_PRECONDITION if two words are
// of one job.
absl::StatusOr<compare::Comparison> CompareJobs(CollectorClient& client,
                                                const Sides& sides,
                                                compare::Question question);

// The same where side A was asked about before. FAILED_PRECONDITION if a job of it is
// one of B.
absl::StatusOr<compare::Comparison> CompareWith(CollectorClient& client,
                                                const compare::Runs& a,
                                                const std::vector<std::string>& b,
                                                compare::Question question);

// Runs with all that a comparison asks about them, in the steady steps that they have
// in common.
absl::StatusOr<compare::Runs> AskAboutJobs(CollectorClient& client,
                                           const std::vector<std::string>& jobs,
                                           compare::ChosenSteps* chosen);

// Asks about one side alone.
absl::StatusOr<compare::Comparison> MeasureJobs(CollectorClient& client,
                                                const std::vector<std::string>& jobs);

}  // namespace lull
