#include "cli/commands/session_options.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/numbers.h"
#include "daemon/base/tags.h"

namespace lull {
namespace {

// With fewer, steps that rested stand side by side.
constexpr double kFewestStepsToOneControl = 4;
constexpr double kMostStepsToOneControl = 100'000;

// What a collector would refuse is refused before the job starts.
void SetTags(const std::vector<std::string>& given, std::vector<std::string>* tags) {
  tags->clear();
  for (const std::string& tag : given) {
    if (!IsTag(tag)) {
      throw CLI::ValidationError("--tag",
                                 absl::StrCat("\"", tag, "\" is no tag: ", kTagRule));
    }
    if (absl::c_linear_search(*tags, tag)) continue;
    tags->push_back(tag);
  }
  if (AreTags(*tags)) return;
  throw CLI::ValidationError("--tag",
                             absl::StrCat("a job has ", kMaxTags, " tags at most"));
}

}  // namespace

void AddTagOption(CLI::App* verb, std::vector<std::string>* tags) {
  verb->add_option_function<std::vector<std::string>>(
          "--tag",
          [tags](const std::vector<std::string>& given) { SetTags(given, tags); },
          "a tag for the job, to list and compare jobs by; may be given often")
      ->type_name("TAG")
      ->allow_extra_args(false);
}

void AddSourceOption(CLI::App* verb, v1::JobSettings* settings) {
  // lull.toml may say false, and what is no word for either must not count as one.
  verb->add_flag_function(
          "--no-source", [settings](int64_t no) { settings->set_no_source(no > 0); },
          "keep no lines of the program's source text")
      ->check(CLI::IsMember({"true", "false"}).description(""))
      ->configurable();
}

void AddSessionOptions(CLI::App* verb, SessionOptions* options) {
  verb->add_option("--name", options->name, "a name for the job, to ask for it later")
      ->type_name("NAME");
  AddTagOption(verb, &options->tags);
  verb->add_option("--run-id", options->run_id,
                   "what all hosts of one job give, if their launcher names no run; "
                   "LULL_RUN_ID does the same")
      ->type_name("ID");
  verb->add_flag("--quiet", options->quiet, "no summary at the end")->configurable();
  verb->add_option_function<double>(
          "--overhead-budget",
          [options](double percent) {
            options->settings.set_overhead_budget_percent(percent);
          },
          "cost that measuring may have, in percent of the job's time")
      ->default_str("1")
      ->check(NumberFrom(0.01, 100))
      ->type_name("PERCENT")
      ->configurable();
  verb->add_option_function<uint32_t>(
          "--control-steps",
          [options](uint32_t one_in) { options->settings.set_control_steps(one_in); },
          "do not record one training step in N, to tell by it what recording costs")
      ->check(NumberFrom(kFewestStepsToOneControl, kMostStepsToOneControl))
      ->type_name("N");
  verb->add_flag_function(
          "--sample-steps",
          [options](int64_t yes) {
            options->settings.set_sample_steps(yes > 0);
            options->settings.set_all_steps(yes <= 0);
          },
          "hold the budget by recording fewer steps, drawn, each with all detail; "
          "=false: never; else only where the least detail does not hold it")
      ->check(CLI::IsMember({"true", "false"}).description(""))
      ->configurable();
  verb->add_flag_function(
      "--no-samples",
      [options](int64_t) { options->settings.set_no_host_samples(true); },
      "do not look at where its threads are");
  AddSourceOption(verb, &options->settings);
  AddTerminalOptions(verb, /*answers=*/false);
  AddCollectorOptions(verb, &options->collector);
}

}  // namespace lull
