#include "cli/commands/compared_jobs.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

absl::StatusOr<compare::Runs> AskForWhole(CollectorClient& client,
                                          const std::vector<std::string>& named,
                                          std::set<std::string>* seen) {
  compare::Runs runs;
  LULL_ASSIGN_OR_RETURN(auto jobs, WithoutTags(client, named));
  for (const std::string& job : jobs) {
    LULL_ASSIGN_OR_RETURN(v1::ReportReply whole,
                          client.GetReport(compare::RequestForWhole(job)));
    if (!seen->insert(whole.job().id()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(compare::NameOf(whole.job()),
                       " is named twice; a job cannot be compared with itself, and a "
                       "name stands for "
                       "the newest job of it (lull jobs shows their ids)"));
    }
    runs.push_back({std::move(whole), {}, {}});
  }
  return runs;
}

absl::Status AskAboutSteps(CollectorClient& client, compare::Run* run) {
  for (const compare::ProcessSteps& process : run->processes) {
    compare::ProcessReplies& replies = run->replies.emplace_back();
    LULL_ASSIGN_OR_RETURN(replies.all,
                          client.GetReport(compare::RequestForAll(*run, process)));
    for (size_t piece = 0; piece < compare::kPieces; ++piece) {
      LULL_ASSIGN_OR_RETURN(
          replies.pieces[piece],
          client.GetReport(compare::RequestForPiece(*run, process, piece)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> JobsOf(const std::string& list) {
  std::vector<std::string> jobs = absl::StrSplit(list, ',');
  for (const std::string& job : jobs) {
    if (job.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", list, "' names no job in one place; write A1,A2,A3"));
    }
  }
  return jobs;
}

absl::StatusOr<std::vector<std::string>> WithoutTags(CollectorClient& client,
                                                     std::vector<std::string> jobs) {
  std::vector<std::string> plain;
  for (std::string& job : jobs) {
    absl::string_view tag = job;
    if (!absl::ConsumePrefix(&tag, "tag:")) {
      plain.push_back(std::move(job));
      continue;
    }
    v1::ListJobsRequest request;
    request.add_tags(std::string(tag));
    LULL_ASSIGN_OR_RETURN(v1::ListJobsReply reply, client.ListJobs(request));
    if (reply.jobs().empty()) {
      return absl::NotFoundError(absl::StrCat(
          "no job has the tag \"", tag,
          "\"; `lull jobs` lists the tags that there are, `lull tag` puts them on"));
    }
    for (auto one = reply.jobs().rbegin(); one != reply.jobs().rend(); ++one) {
      plain.push_back(one->id());
    }
  }
  return plain;
}

absl::StatusOr<compare::Comparison> CompareJobs(CollectorClient& client,
                                                const Sides& sides,
                                                compare::Question question) {
  std::set<std::string> seen;
  LULL_ASSIGN_OR_RETURN(compare::Runs a, AskForWhole(client, sides.a, &seen));
  LULL_ASSIGN_OR_RETURN(compare::Runs b, AskForWhole(client, sides.b, &seen));
  std::vector<compare::Run*> all;
  for (compare::Run& run : a) all.push_back(&run);
  for (compare::Run& run : b) all.push_back(&run);
  question.chosen =
      question.own_steps ? compare::ChooseOwnSteps(all) : compare::ChooseSteps(all);
  for (compare::Run* run : all) {
    LULL_RETURN_IF_ERROR(AskAboutSteps(client, run));
  }
  return compare::Compare(a, b, question);
}

absl::StatusOr<compare::Comparison> CompareWith(CollectorClient& client,
                                                const compare::Runs& a,
                                                const std::vector<std::string>& jobs,
                                                compare::Question question) {
  std::set<std::string> seen;
  LULL_ASSIGN_OR_RETURN(compare::Runs b, AskForWhole(client, jobs, &seen));
  for (const compare::Run& run : a) {
    if (seen.count(run.whole.job().id()) == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the baseline is of ", compare::NameOf(run.whole.job()),
                     " itself; a job cannot be compared with itself"));
  }
  std::vector<compare::Run*> all;
  for (compare::Run& run : b) all.push_back(&run);
  question.chosen = question.own_steps ? compare::ChooseOwnSteps(all)
                                       : compare::ChooseStepsLike(a, all);
  for (compare::Run* run : all) {
    LULL_RETURN_IF_ERROR(AskAboutSteps(client, run));
  }
  return compare::Compare(a, b, question);
}

absl::StatusOr<compare::Runs> AskAboutJobs(CollectorClient& client,
                                           const std::vector<std::string>& jobs,
                                           compare::ChosenSteps* chosen) {
  std::set<std::string> seen;
  LULL_ASSIGN_OR_RETURN(compare::Runs runs, AskForWhole(client, jobs, &seen));
  std::vector<compare::Run*> all;
  for (compare::Run& run : runs) all.push_back(&run);
  *chosen = compare::ChooseSteps(all);
  for (compare::Run* run : all) {
    LULL_RETURN_IF_ERROR(AskAboutSteps(client, run));
  }
  return runs;
}

absl::StatusOr<compare::Comparison> MeasureJobs(CollectorClient& client,
                                                const std::vector<std::string>& jobs) {
  compare::ChosenSteps chosen;
  LULL_ASSIGN_OR_RETURN(compare::Runs runs, AskAboutJobs(client, jobs, &chosen));
  return compare::MeasureAlone(runs, chosen);
}

}  // namespace lull
