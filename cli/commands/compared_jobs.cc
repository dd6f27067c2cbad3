#include "cli/commands/compared_jobs.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// Ids of jobs, and by which word of the command line they are there.
using Seen = std::map<std::string, std::string>;

// The same word twice is a wrong command line; which jobs have a tag, a name or an id,
// no command line tells.
absl::Status NamedTwice(const v1::Job& job, const std::string& word,
                        const std::string& other) {
  constexpr char kWhy[] = "a job cannot be compared with itself";
  if (word == other) {
    return absl::InvalidArgumentError(
        absl::StrCat(compare::NameOf(job), " is named twice; ", kWhy,
                     ", and a name stands for the newest job of it (lull jobs shows "
                     "their ids)"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(compare::NameOf(job), " is named twice, by ", Printable(other),
                   " and by ", Printable(word), "; ", kWhy));
}

absl::StatusOr<compare::Runs> AskForWhole(CollectorClient& client,
                                          const std::vector<std::string>& named,
                                          Seen* seen) {
  compare::Runs runs;
  for (const std::string& word : named) {
    LULL_ASSIGN_OR_RETURN(auto jobs, WithoutTags(client, {word}));
    for (const std::string& job : jobs) {
      LULL_ASSIGN_OR_RETURN(v1::ReportReply whole,
                            client.GetReport(compare::RequestForWhole(job)));
      const auto [before, is_first] = seen->emplace(whole.job().id(), word);
      if (!is_first) return NamedTwice(whole.job(), word, before->second);
      runs.push_back({std::move(whole), {}, {}});
    }
  }
  return runs;
}

// Left out silently, it would be a run less that nobody knows of.
absl::Status DamagedOne(const std::string& id, absl::string_view tag) {
  return absl::DataLossError(absl::StrCat("the row of job ", ShortId(id),
                                          ", which has the tag \"", tag,
                                          "\", in the database is damaged; name the "
                                          "other jobs by their ids, or take the tag "
                                          "off it: lull untag ",
                                          ShortId(id), " ", tag));
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
  std::vector<std::string> jobs = {""};
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == ',') {
      jobs.emplace_back();
      continue;
    }
    const bool is_plain_comma = absl::StartsWith(list.substr(i, 2), "\\,");
    jobs.back() += list[is_plain_comma ? ++i : i];
  }
  for (const std::string& job : jobs) {
    if (job.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", list, "' names no job in one place; write A1,A2,A3"));
    }
  }
  return jobs;
}

absl::StatusOr<std::vector<std::string>> WithoutTags(CollectorClient& client,
                                                     std::vector<std::string> jobs,
                                                     bool with_damaged) {
  std::vector<std::string> plain;
  for (std::string& job : jobs) {
    absl::string_view tag = job;
    if (!absl::ConsumePrefix(&tag, "tag:")) {
      // The name of a job may begin as tags do here.
      plain.push_back(absl::StartsWith(job, "\\tag:") ? job.substr(1) : std::move(job));
      continue;
    }
    v1::ListJobsRequest request;
    request.add_tags(std::string(tag));
    LULL_ASSIGN_OR_RETURN(v1::ListJobsReply reply, client.ListJobs(request));
    for (const std::string& id : reply.damaged_jobs()) {
      if (!with_damaged) return DamagedOne(id, tag);
      plain.push_back(id);
    }
    if (reply.jobs().empty() && reply.damaged_jobs().empty()) {
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
  Seen seen;
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
  Seen seen;
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
  Seen seen;
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
