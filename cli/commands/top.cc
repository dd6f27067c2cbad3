// `lull top`: a job as it runs, in a terminal.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/arming.h"
#include "cli/top/feed.h"
#include "cli/top/state.h"
#include "cli/top/tables.h"
#include "cli/top/terminal.h"
#include "cli/top/view.h"
#include "daemon/base/status.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// Of `--once`, where no terminal says how many there are.
constexpr size_t kRowsOfOne = 40;
constexpr size_t kColumnsOfOne = 100;
constexpr absl::Duration kTick = absl::Milliseconds(250);

struct TopOptions {
  CollectorFlags collector;
  std::string job;
  std::string last = "60s";
  std::string every = "2s";
  std::optional<int32_t> rank;
  bool once = false;
};

// What the options mean.
struct TopPlan {
  v1::ReportRequest request;
  uint64_t last_ns = 0;
  absl::Duration every;
};

absl::StatusOr<TopPlan> MakePlan(const TopOptions& options) {
  TopPlan plan;
  plan.request = TopRequest(options.job);
  if (options.rank) plan.request.set_rank(*options.rank);
  if (options.last != "all") {
    auto last = ParseTime(options.last);
    if (!last.ok()) return Annotate(last.status(), "--last");
    if (*last == 0) return absl::InvalidArgumentError("--last: no time at all");
    plan.last_ns = *last;
  }
  auto every = ParseTime(options.every);
  if (!every.ok()) return Annotate(every.status(), "--every");
  plan.every = std::max(absl::Milliseconds(250), absl::Nanoseconds(*every));
  return plan;
}

// Questions about one job: the newest stays the one it was at the first answer.
class Asker {
 public:
  Asker(CollectorClient& client, v1::ReportRequest request)
      : client_(client), request_(std::move(request)) {}

  absl::StatusOr<v1::ReportReply> operator()(uint64_t last_ns) {
    if (last_ns != 0 && duration_ns_ == 0) {
      // Nobody knows yet how long the job has been: this answer tells it.
      LULL_ASSIGN_OR_RETURN(v1::ReportReply whole, Get(0));
      if (whole.job().duration_ns() <= last_ns) return whole;
    }
    return Get(last_ns);
  }

 private:
  absl::StatusOr<v1::ReportReply> Get(uint64_t last_ns) {
    request_.clear_since_ns();
    if (last_ns != 0 && duration_ns_ > last_ns) {
      request_.set_since_ns(duration_ns_ - last_ns);
    }
    LULL_ASSIGN_OR_RETURN(v1::ReportReply reply, client_.GetReport(request_));
    request_.set_job(reply.job().id());
    duration_ns_ = reply.job().duration_ns();
    return reply;
  }

  CollectorClient& client_;
  v1::ReportRequest request_;
  uint64_t duration_ns_ = 0;  // of the job, by the last answer
};

std::string ArmOrDisarm(CollectorClient& client, const std::string& job, bool armed) {
  v1::ArmRequest request;
  request.set_job(job);
  request.set_armed(armed);
  auto reply = client.Arm(request);
  return Printable(reply.ok() ? ArmedText(*reply) : reply.status().message());
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Without keys, and without empty lines at its end.
int PrintOnce(const v1::ReportReply& reply, const TopState& state) {
  const size_t terminal = TerminalColumns(STDOUT_FILENO);
  const size_t columns = terminal > 0 ? terminal : kColumnsOfOne;
  std::vector<TopLine> screen = TopScreen(reply, state, kRowsOfOne, columns, 0);
  screen.pop_back();
  while (!screen.empty() && screen.back().text.empty()) screen.pop_back();
  std::string text;
  for (const TopLine& line : screen) absl::StrAppend(&text, line.text, "\n");
  Print(text);
  return 0;
}

void Watch(CollectorClient& client, TopTerminal& terminal, TopFeed& feed,
           TopState state) {
  while (true) {
    const TopFeed::Picture picture = feed.Latest();
    state.message = FirstLine(picture.message);
    terminal.Draw(TopScreen(*picture.reply, state, terminal.rows(), terminal.columns(),
                            picture.age_ns));
    const int key = terminal.ReadKey(kTick);
    if (key == TopTerminal::kGone) return;
    if (key == 0) continue;
    switch (Press(key, &state)) {
      case TopCommand::kQuit:
        return;
      case TopCommand::kArm:
      case TopCommand::kDisarm: {
        const bool armed = key == 'a';
        feed.Do([&client, job = picture.reply->job().id(), armed] {
          return ArmOrDisarm(client, job, armed);
        });
        break;
      }
      case TopCommand::kAsk:
      case TopCommand::kNone:
        feed.SetSpan(state.last_ns, state.paused);
        break;
    }
  }
}

int Execute(const TopOptions& options) {
  auto plan = MakePlan(options);
  if (!plan.ok()) return Fail("top", plan.status());
  auto client = Connect(options.collector);
  if (!client.ok()) return Fail("top", client.status());
  TopState state;
  state.last_ns = plan->last_ns;
  Asker asker(**client, plan->request);
  if (options.once) {
    auto reply = asker(plan->last_ns);
    if (!reply.ok()) return Fail("top", reply.status().message(), kExitFailed);
    return PrintOnce(*reply, state);
  }
  TopFeed feed([&asker](uint64_t last_ns) { return asker(last_ns); }, plan->every);
  absl::Status first = feed.Start(plan->last_ns);
  if (!first.ok()) return Fail("top", first.message(), kExitFailed);
  {
    TopTerminal terminal;
    absl::Status open = terminal.Open(UseColour(STDOUT_FILENO));
    if (!open.ok()) return Fail("top", open.message(), kExitUsage);
    Watch(**client, terminal, feed, state);
  }
  // Whoever leaves does not wait for the answer under way.
  std::_Exit(0);
}

}  // namespace

void AddTop(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* verb = app.add_subcommand(
      "top", "A job as it runs, in the terminal: ranks, causes, lines, memory");
  verb->footer(
      "The upper table has a row for each rank, the lower one what is chosen by 1 to "
      "5: "
      "gaps,\nsyncs, host lines, waits, kernels. ? lists all keys. The job goes on "
      "when you leave.\n\n"
      "Examples:\n  lull top\n  lull top resnet --last 5m\n"
      "  lull top resnet --once | head -20");
  verb->add_option("JOB", options->job,
                   "job: beginning of its id, or its name (default: the newest)")
      ->type_name("");
  verb->add_option("--last", options->last,
                   "only so much of the job, up to now: 10s, 5m; all: from its start")
      ->capture_default_str()
      ->type_name("TIME|all");
  verb->add_option("--every", options->every, "ask the collector this often")
      ->capture_default_str()
      ->type_name("TIME");
  verb->add_option("--rank", options->rank, "only this rank of a distributed job")
      ->type_name("R");
  verb->add_flag("--once", options->once, "print one picture as text, and leave");
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/false);
  verb->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace lull
