#include "cli/commands/query_options.h"

#include <array>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/output_file.h"
#include "cli/html/page.h"
#include "cli/html/request.h"
#include "daemon/base/status.h"
#include "daemon/words/enum_key.h"

namespace lull {
namespace {

void AddSampleOptions(CLI::App* verb, QueryOptions* options) {
  verb->add_option("--role", options->role, "only threads of this kind")
      ->check(CLI::IsMember({"main", "feeder", "autograd", "loader", "other"})
                  .description(""))
      ->type_name("main|feeder|autograd|loader|other");
  verb->add_flag("--folded", options->folded, "print folded stacks, for flame graphs");
}

void AddSortOption(CLI::App* verb, QueryOptions* options) {
  verb->add_option("--sort", options->sort, "most GPU time first, or most bytes")
      ->capture_default_str()
      ->check(CLI::IsMember({"time", "memory"}).description(""))
      ->type_name("time|memory");
}

void AddPageOption(CLI::App* verb, QueryOptions* options) {
  verb->add_option("--html", options->html,
                   "write a page for a browser into FILE, \"-\" for stdout")
      ->type_name("FILE");
}

void AddRegionOption(CLI::App* verb, QueryOptions* options) {
  verb->add_option("--region", options->region,
                   "only what lies in this region of the program (lull regions)")
      ->type_name("NAME");
}

void AddOptions(CLI::App* verb, QueryOptions* options) {
  verb->add_option("JOB", options->job,
                   "job: beginning of its id, or its name (default: the newest)")
      ->type_name("");
  verb->add_flag("--json", options->json, "print JSON instead of a table");
  verb->add_option("--top", options->top, "rows at most, 0 for all")
      ->capture_default_str()
      ->type_name("N")
      ->configurable();
  verb->add_option("--by", options->by, "one row per line, function or stack")
      ->capture_default_str()
      ->check(CLI::IsMember({"line", "function", "stack"}).description(""))
      ->type_name("line|function|stack")
      ->configurable();
  verb->add_option("--rank", options->rank, "only this rank of a distributed job")
      ->type_name("R");
  verb->add_option("--pid", options->pid, "only this process")->type_name("PID");
  verb->add_option("--phase", options->phase,
                   "the steady state (where steps are known), set-up, or all")
      ->check(CLI::IsMember({"steady", "setup", "all"}).description(""))
      ->type_name("steady|setup|all");
  verb->add_option("--since", options->since,
                   "only what began this long after the job's start: 90s, 2m, 1h")
      ->type_name("TIME");
  verb->add_option("--until", options->until, "only what began earlier than this")
      ->type_name("TIME");
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/true);
}

int Run(const AnswerVerb& verb, const QueryOptions& options, bool top_is_given) {
  auto request = MakeRequest(options);
  if (!request.ok()) return Fail(verb.name, request.status().message(), kExitUsage);
  const bool as_page = !options.html.empty();
  if (as_page) {
    if (!top_is_given) request->set_top(kPageRows);
    AskForPage(&*request);
  }
  auto client = Connect(options.collector);
  if (!client.ok()) return Fail(verb.name, client.status());
  if (verb.section != v1::SECTION_UNSPECIFIED) {
    request->add_sections(verb.section);
  } else {
    request->set_with_sources(options.json || as_page);
  }
  auto reply = (*client)->GetReport(*request);
  if (!reply.ok()) return Fail(verb.name, reply.status().message(), kExitFailed);
  if (options.folded) {
    Print(verb.folded(*reply));
    return 0;
  }
  if (as_page) {
    absl::Status written = WriteWhole(options.html, Page(*reply, MadeNow()));
    if (written.ok()) return 0;
    PrintError(verb.name, written.message());
    return kExitFailed;
  }
  PrintAnswer(options.json, options.json ? JsonText(verb.json(*reply))
                                         : verb.text(*reply, request->group_by()));
  return 0;
}

}  // namespace

absl::StatusOr<uint64_t> ParseTime(absl::string_view text) {
  struct Unit {
    absl::string_view name;
    double seconds;
  };
  // "ms" before "s", which it ends in.
  constexpr std::array<Unit, 5> kUnits = {
      {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}}};
  absl::string_view number = text;
  double unit = 1;
  for (const Unit& candidate : kUnits) {
    if (absl::ConsumeSuffix(&number, candidate.name)) {
      unit = candidate.seconds;
      break;
    }
  }
  double value = 0;
  constexpr double kYear = 366.0 * 24 * 3600;
  if (absl::SimpleAtod(number, &value) && value * unit > kYear) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than a year"));
  }
  // Written so that NaN fails, too.
  if (!absl::SimpleAtod(number, &value) || !(value >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no time; write 90s, 2m, 1.5h, 7d or 250ms"));
  }
  return static_cast<uint64_t>(value * unit * 1e9);
}

absl::StatusOr<v1::ReportRequest> MakeRequest(const QueryOptions& options) {
  v1::ReportRequest request;
  request.set_job(options.job);
  request.set_top(options.top);
  request.set_group_by(FromKey<v1::GroupBy>(options.by).value_or(v1::GROUP_BY_LINE));
  request.set_phase(FromKey<v1::Phase>(options.phase).value_or(v1::PHASE_UNSPECIFIED));
  if (options.folded) {
    if (options.json) return absl::InvalidArgumentError("--folded is no JSON");
    request.set_group_by(v1::GROUP_BY_STACK);
    request.set_top(0);
  }
  if (options.json && !options.html.empty()) {
    return absl::InvalidArgumentError("--html is no JSON");
  }
  request.set_region(options.region);
  if (options.sort == "memory") request.set_operator_sort(v1::OPERATOR_SORT_MEMORY);
  if (auto role = FromKey<v1::HostSampleRole>(options.role)) request.set_role(*role);
  if (options.rank) request.set_rank(*options.rank);
  if (options.pid) request.set_pid(*options.pid);
  if (!options.since.empty()) {
    auto since = ParseTime(options.since);
    if (!since.ok()) return Annotate(since.status(), "--since");
    request.set_since_ns(*since);
  }
  if (!options.until.empty()) {
    auto until = ParseTime(options.until);
    if (!until.ok()) return Annotate(until.status(), "--until");
    request.set_until_ns(*until);
  }
  if (request.has_since_ns() && request.has_until_ns() &&
      request.since_ns() >= request.until_ns()) {
    return absl::InvalidArgumentError("--until must be later than --since");
  }
  return request;
}

void AddAnswerVerb(CLI::App& app, const AnswerVerb& verb, int* exit_code) {
  auto options = std::make_shared<QueryOptions>();
  CLI::App* command = app.add_subcommand(verb.name, verb.description);
  command->footer(verb.example);
  AddOptions(command, options.get());
  if (verb.folded != nullptr) AddSampleOptions(command, options.get());
  if (verb.sorts) AddSortOption(command, options.get());
  if (verb.by_region) AddRegionOption(command, options.get());
  if (verb.as_page) AddPageOption(command, options.get());
  command->callback([&verb, options, exit_code, command] {
    *exit_code = Run(verb, *options, command->count("--top") > 0);
  });
}

}  // namespace lull
