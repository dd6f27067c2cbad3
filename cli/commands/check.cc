// `lull check`: rules over a job, for continuous integration.
#include "cli/render/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/check_rules.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/compared_jobs.h"
#include "cli/commands/output_file.h"
#include "cli/commands/verbs.h"
#include "cli/render/baseline.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

constexpr char kRulesFile[] = "lull.toml";

struct CheckOptions {
  CollectorFlags collector;
  std::string jobs;
  std::string baseline;
  std::string write_baseline;
  std::vector<std::string> fail_if;
  std::vector<std::string> allow;
  std::string rules_file;
  std::string junit;
  std::string sarif;
  std::string annotations;
  bool allow_failed_job = false;
  bool json = false;
  bool metrics = false;
};

// A link that leads nowhere, or what may not be looked at, is no file that is not
// there.
bool IsRulesFileThere() {
  using std::filesystem::file_type;
  std::error_code error;
  return std::filesystem::symlink_status(kRulesFile, error).type() !=
         file_type::not_found;
}

absl::Status AddRulesFile(const CheckOptions& options, CheckRules* rules) {
  if (!options.rules_file.empty()) {
    return rules->AddFile(options.rules_file, /*named=*/true);
  }
  return IsRulesFileThere() ? rules->AddFile(kRulesFile) : absl::OkStatus();
}

absl::StatusOr<CheckRules> RulesOf(const CheckOptions& options) {
  CheckRules rules;
  rules.allow_failed_job = options.allow_failed_job;
  LULL_RETURN_IF_ERROR(AddRulesFile(options, &rules));
  for (const std::string& rule : options.fail_if) {
    LULL_RETURN_IF_ERROR(rules.AddRule("--fail-if", rule));
  }
  for (const std::string& allowance : options.allow) {
    LULL_RETURN_IF_ERROR(rules.AddAllowance("--allow", allowance));
  }
  if (rules.rules.empty()) {
    return absl::InvalidArgumentError(
        "there is no rule: give --fail-if 'sync.wasted_percent > 2', or fail-if = "
        "[...] below [check] in lull.toml");
  }
  for (const check::Rule& rule : rules.rules) {
    if (!rule.NeedsBaseline() || !options.baseline.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", rule.text, "' compares with a baseline: add --baseline JOB|FILE"));
  }
  return rules;
}

// Jobs have names like these only if somebody wants trouble.
bool IsBaselineFile(const std::string& baseline) {
  return absl::StrContains(baseline, '/') || absl::EndsWith(baseline, ".json");
}

absl::StatusOr<compare::Runs> LoadBaseline(const std::string& path) {
  auto wrong = [&path](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat("the baseline ", path, " ", why));
  };
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return wrong(absl::StrCat("cannot be read: ", strerror(errno)));
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return wrong("is no file");
  if (static_cast<size_t>(info.st_size) > kMostBaselineBytes)
    return wrong("is too large");
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (read(file.get(), text.data(), text.size()) != info.st_size) {
    return wrong("cannot be read");
  }
  auto runs = ReadBaseline(text);
  if (!runs.ok()) return wrong(runs.status().message());
  return runs;
}

absl::StatusOr<compare::Comparison> CompareWithBaseline(const CheckOptions& options,
                                                        CollectorClient& client,
                                                        const Sides& sides,
                                                        compare::Question question) {
  if (!IsBaselineFile(options.baseline)) return CompareJobs(client, sides, question);
  LULL_ASSIGN_OR_RETURN(compare::Runs a, LoadBaseline(options.baseline));
  return CompareWith(client, a, sides.b, question);
}

absl::StatusOr<check::Evidence> Ask(const CheckOptions& options, const Sides& sides,
                                    const CheckRules& rules) {
  LULL_ASSIGN_OR_RETURN(auto client, Connect(options.collector));
  check::Evidence evidence;
  compare::Question question;
  question.warn_of_few_runs = false;  // rules about times say so themselves
  question.each_process = true;
  for (const check::Rule& rule : rules.rules) {
    question.own_steps = rule.selector.only_new;
    auto& compared = question.own_steps ? evidence.own_steps : evidence.baseline;
    if (rule.NeedsBaseline() && !compared) {
      LULL_ASSIGN_OR_RETURN(compared,
                            CompareWithBaseline(options, *client, sides, question));
    }
    if (!rule.NeedsBaseline() && !evidence.alone) {
      LULL_ASSIGN_OR_RETURN(evidence.alone, MeasureJobs(*client, sides.b));
    }
  }
  return evidence;
}

absl::Status WriteFiles(const CheckOptions& options, const check::Verdict& verdict,
                        const std::string& root) {
  if (!options.junit.empty()) {
    LULL_RETURN_IF_ERROR(WriteWhole(options.junit, CheckJunit(verdict)));
  }
  if (!options.sarif.empty()) {
    LULL_RETURN_IF_ERROR(WriteWhole(options.sarif, CheckSarif(verdict, root)));
  }
  return absl::OkStatus();
}

// What keeps a gate from judging is no failure of the program: it has its own status.
int CannotJudge(const absl::Status& status) {
  return Fail("check", status.message(),
              absl::IsInvalidArgument(status) ? kExitUsage : kExitCannotJudge);
}

// Files of an earlier run must not stand for this one, which could not be judged at
// all.
int FilesOfNothing(const CheckOptions& options, const CheckRules& rules,
                   const std::string& root, const absl::Status& why) {
  check::Verdict verdict;
  for (const check::Rule& rule : rules.rules) {
    check::Judgement& judgement = verdict.rules.emplace_back();
    judgement.rule = rule;
    judgement.measured.why_not = std::string(why.message());
  }
  const absl::Status written = WriteFiles(options, verdict, root);
  if (!written.ok()) PrintError("check", written.message());
  return kExitCannotJudge;
}

// What is there already and is no pipe and no terminal.
std::string IfFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) ? path : "";
}

// From here on they say that there is no verdict, whatever ends this run.
void OverwriteEarlierFiles(const std::string& junit, const std::string& sarif) {
  CheckOptions options;
  options.junit = IfFile(junit);
  options.sarif = IfFile(sarif);
  CheckRules rules;
  check::Rule& rule = rules.rules.emplace_back();
  rule.text = rule.metric.name = "lull check";
  FilesOfNothing(options, rules, "",
                 absl::UnknownError("it came to no verdict; its own output says why"));
}

int ListMetrics() {
  std::string text;
  for (const check::Metric& metric : check::Metrics()) {
    absl::StrAppend(&text, metric.name, "\n");
  }
  Print(text);
  return 0;
}

// Of what proves nothing no baseline is made: all that comes later would be new, or
// nothing would.
absl::Status WriteBaseline(const CheckOptions& options) {
  LULL_ASSIGN_OR_RETURN(auto jobs, JobsOf(options.jobs));
  LULL_ASSIGN_OR_RETURN(auto client, Connect(options.collector));
  compare::ChosenSteps chosen;
  LULL_ASSIGN_OR_RETURN(compare::Runs runs, AskAboutJobs(*client, jobs, &chosen));
  const compare::Comparison alone = compare::MeasureAlone(runs, chosen);
  std::vector<std::string> reasons = alone.reasons;
  for (const compare::Run& run : runs) {
    const v1::Job& job = run.whole.job();
    const bool failed = job.exit_status_known() && job.exit_status() != 0;
    if (!job.ended()) {
      reasons.push_back(absl::StrCat(compare::NameOf(job), " is not over yet"));
    } else if (failed && !options.allow_failed_job) {
      reasons.push_back(absl::StrCat(compare::NameOf(job), " ended with exit status ",
                                     job.exit_status(),
                                     " (--allow-failed-job takes it all the same)"));
    }
  }
  if (!reasons.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this is no baseline: ", absl::StrJoin(reasons, "; ")));
  }
  return WriteWhole(options.write_baseline, BaselineText(runs));
}

int Gate(const CheckOptions& options) {
  OverwriteEarlierFiles(options.junit, options.sarif);
  if (options.metrics) return ListMetrics();
  if (options.jobs.empty()) return Fail("check", "JOB is required", kExitUsage);
  if (!options.write_baseline.empty()) {
    if (options.write_baseline != "-" && !IsBaselineFile(options.write_baseline)) {
      return Fail("check",
                  absl::StrCat("--baseline would take ", options.write_baseline,
                               " for a job: write ./", options.write_baseline,
                               ", or a name that ends in .json"),
                  kExitUsage);
    }
    const absl::Status written = WriteBaseline(options);
    return written.ok() ? 0 : CannotJudge(written);
  }
  auto rules = RulesOf(options);
  if (!rules.ok()) return CannotJudge(rules.status());
  Sides sides;
  auto jobs = JobsOf(options.jobs);
  if (!jobs.ok()) return CannotJudge(jobs.status());
  sides.b = *jobs;
  if (!options.baseline.empty() && !IsBaselineFile(options.baseline)) {
    auto baseline = JobsOf(options.baseline);
    if (!baseline.ok()) return CannotJudge(baseline.status());
    sides.a = *baseline;
  }
  std::error_code error;
  const std::string root = std::filesystem::current_path(error).string();
  auto evidence = Ask(options, sides, *rules);
  if (!evidence.ok()) {
    const int status = CannotJudge(evidence.status());
    return status == kExitUsage
               ? status
               : FilesOfNothing(options, *rules, root, evidence.status());
  }
  const std::string today =
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  const check::Verdict verdict = check::Judge(
      rules->rules, *evidence, {rules->allowances, rules->allow_failed_job}, today);
  PrintAnswer(options.json,
              options.json ? JsonText(CheckJson(verdict)) : CheckText(verdict));
  if (!options.annotations.empty()) Print(CheckAnnotations(verdict, root));
  const int status = ExitStatusOf(verdict.outcome);
  absl::Status written = WriteFiles(options, verdict, root);
  if (written.ok()) return status;
  // A file that is missing must not look like one that says nothing.
  return Fail("check", written.message(), status == 0 ? kExitCannotJudge : status);
}

// An answer that nobody got is neither passed nor failed.
int Execute(const CheckOptions& options) {
  const int status = Gate(options);
  return FlushOutput("check") ? status : kExitCannotJudge;
}

// The value of an option, as far as that can be told of a command line that is wrong.
std::string ValueIn(const std::vector<std::string>& words, const std::string& option) {
  std::string value;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (word == option && i + 1 < words.size()) value = words[i + 1];
    if (absl::ConsumePrefix(&word, option + "=")) value = std::string(word);
  }
  return value;
}

}  // namespace

void CheckWasNotUnderstood(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.front() != "check") return;
  OverwriteEarlierFiles(ValueIn(words, "--junit"), ValueIn(words, "--sarif"));
}

void AddCheck(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = app.add_subcommand(
      "check", "A gate for continuous integration: rules over a job");
  verb->footer(
      "A rule says what must not be: METRIC[(SELECTOR)] OPERATOR NUMBER. Selectors "
      "are\n"
      "(new), not in the baseline or there in another file, (FILE) and (FILE:LINE).\n"
      "Rules and allowances also stand in lull.toml, below [check]. Only steady steps\n"
      "are judged; what was not measured has never passed.\n\n"
      "Exit status: 0 passed, 1 failed, 3 cannot be judged, 2 a wrong command line.\n\n"
      "Examples:\n  lull check pr --fail-if 'sync.wasted_percent > 2'\n"
      "  lull check pr --baseline main --fail-if 'sync.calls_per_step(new) > 0' \\\n"
      "    --allow 'train.py:47: logs the loss' --junit lull.xml\n"
      "  lull check main --write-baseline ./lull-baseline.json\n"
      "  lull check pr --baseline ./lull-baseline.json --fail-if "
      "'sync.calls_per_step(new) > 0'");
  verb->add_option("JOB", options->jobs,
                   "job, or runs of it: B1,B2,B3, or tag:TAG for all with that tag")
      ->type_name("");
  CLI::Option* baseline =
      verb->add_option(
              "--baseline", options->baseline,
              "job, or jobs, to compare with: A1,A2,A3; or a FILE, which has a "
              "'/' in its name or ends in .json")
          ->type_name("JOB|FILE");
  CLI::Option* fail_if =
      verb->add_option("--fail-if", options->fail_if, "a rule; may be given many times")
          ->type_name("RULE")
          ->allow_extra_args(false);
  CLI::Option* allow =
      verb->add_option("--allow", options->allow,
                       "a sync point that may be, and why: FILE:LINE: REASON")
          ->type_name("PLACE")
          ->allow_extra_args(false);
  verb->add_flag("--allow-failed-job", options->allow_failed_job,
                 "judge also a job that a signal or an error ended");
  CLI::Option* rules =
      verb->add_option("--rules", options->rules_file,
                       "read [check] of this file (default: lull.toml, if it is there)")
          ->type_name("FILE");
  CLI::Option* junit =
      verb->add_option("--junit", options->junit, "write JUnit XML")->type_name("FILE");
  CLI::Option* sarif = verb->add_option("--sarif", options->sarif, "write SARIF 2.1.0")
                           ->type_name("FILE");
  CLI::Option* annotations = verb->add_option("--annotations", options->annotations,
                                              "print errors beside the code: github")
                                 ->check(CLI::IsMember({"github"}).description(""))
                                 ->type_name("KIND");
  CLI::Option* json =
      verb->add_flag("--json", options->json, "print JSON instead of text")
          ->excludes(annotations);
  CLI::Option* metrics =
      verb->add_flag("--metrics", options->metrics, "list what rules may speak of");
  CLI::Option* write_baseline =
      verb->add_option(
              "--write-baseline", options->write_baseline,
              "judge nothing, and keep the job in FILE as a baseline for later")
          ->type_name("FILE");
  // Nobody must take a status of 0 for a verdict on rules that were not judged.
  for (CLI::Option* judging :
       {baseline, fail_if, allow, rules, junit, sarif, annotations, json, metrics}) {
    write_baseline->excludes(judging);
    if (judging != metrics) metrics->excludes(judging);
  }
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace lull
