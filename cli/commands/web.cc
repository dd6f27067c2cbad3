// `lull web`: the page of a job as it runs, the list of jobs and their comparison, for
// the browser of whoever started it.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/compared_jobs.h"
#include "cli/commands/verbs.h"
#include "cli/html/packed.h"
#include "cli/html/page.h"
#include "cli/html/request.h"
#include "cli/web/guard.h"
#include "daemon/base/job_id.h"
#include "daemon/base/status.h"
#include "daemon/http/server.h"

namespace lull {
namespace {

constexpr int kMostJobs = 500;
constexpr size_t kDiffRows = 30;

struct WebOptions {
  CollectorFlags collector;
  uint16_t port = 0;
};

// The data of a page as text.
using Data = absl::StatusOr<std::string>;

// By whole ids alone: nothing that a collector would have to look for.
absl::StatusOr<std::vector<std::string>> JobsIn(absl::string_view list) {
  LULL_ASSIGN_OR_RETURN(auto jobs, JobsOf(std::string(list)));
  if (jobs.size() <= 16 && std::all_of(jobs.begin(), jobs.end(), IsJobId)) return jobs;
  return absl::NotFoundError("no such page");
}

class Pages {
 public:
  explicit Pages(const CollectorFlags& collector) : collector_(collector) {}

  // The list of jobs is at "".
  Data Of(absl::string_view path, absl::string_view query) {
    if (path.empty() && query.empty()) return Jobs();
    if (path == "diff") return Diff(query);
    if (absl::ConsumePrefix(&path, "job/") && IsJobId(path) && query.empty()) {
      return Job(path);
    }
    return absl::NotFoundError("no such page");
  }

 private:
  Data Jobs() {
    LULL_ASSIGN_OR_RETURN(auto client, Connect(collector_));
    v1::ListJobsRequest request;
    request.set_limit(kMostJobs + 1);
    LULL_ASSIGN_OR_RETURN(v1::ListJobsReply reply, client->ListJobs(request));
    const bool has_more = reply.jobs_size() + reply.damaged_jobs_size() > kMostJobs;
    if (reply.jobs_size() > kMostJobs) reply.mutable_jobs()->RemoveLast();
    Json data = JobsPageData(reply);
    if (has_more) data["most"] = kMostJobs;
    data["live"] = true;
    return ScriptText(data);
  }

  Data Job(absl::string_view id) {
    LULL_ASSIGN_OR_RETURN(auto client, Connect(collector_));
    v1::ReportRequest request;
    request.set_job(std::string(id));
    request.set_top(kPageRows);
    AskForPage(&request);
    LULL_ASSIGN_OR_RETURN(v1::ReportReply reply, client->GetReport(request));
    const bool over = reply.job().ended() || reply.job().end_unseen();
    return LivePageText(reply, !over);
  }

  Data Diff(absl::string_view query) {
    std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(query, absl::MaxSplits('&', 1));
    if (!absl::ConsumePrefix(&sides.first, "a=") ||
        !absl::ConsumePrefix(&sides.second, "b=")) {
      return absl::NotFoundError("no such page");
    }
    Sides jobs;
    LULL_ASSIGN_OR_RETURN(jobs.a, JobsIn(sides.first));
    LULL_ASSIGN_OR_RETURN(jobs.b, JobsIn(sides.second));
    LULL_ASSIGN_OR_RETURN(auto client, Connect(collector_));
    LULL_ASSIGN_OR_RETURN(compare::Comparison comparison,
                          CompareJobs(*client, jobs, compare::Question()));
    Json data = DiffPageData(comparison, kDiffRows);
    data["live"] = false;
    return ScriptText(data);
  }

  const CollectorFlags collector_;
};

http::Answer AnswerTo(Pages& pages, absl::string_view path, absl::string_view query) {
  const bool data_alone = path == "data" ? absl::ConsumePrefix(&path, "data")
                                         : absl::ConsumeSuffix(&path, "/data");
  Data data = pages.Of(path, query);
  http::Answer answer;
  if (!data.ok()) {
    answer.status = absl::IsNotFound(data.status())          ? 404
                    : absl::IsInvalidArgument(data.status()) ? 400
                                                             : 503;
    answer.body = absl::StrCat(data.status().message(), "\n");
  } else if (data_alone) {
    answer.type = "application/json";
    answer.body = *std::move(data);
  } else {
    answer.type = "text/html; charset=utf-8";
    answer.body = ServedPage(*data);
    answer.has_policy = true;
  }
  return answer;
}

int Run(const WebOptions& options) {
  Pages pages(options.collector);
  Data first = pages.Of("", "");  // what is wrong with the collector is said now
  if (!first.ok()) return Fail("web", first.status());
  auto secrets = web::Guard::NewSecrets();
  if (!secrets.ok()) return Fail("web", secrets.status());
  const web::Guard guard(*std::move(secrets));
  http::ServerOptions server_options;
  server_options.port = options.port;
  server_options.ends_by_signals = true;
  auto server = http::Server::Listen(
      server_options,
      [&guard](const http::Request& request) { return guard.Decide(request); },
      [&pages](const std::string& path, const std::string& query) {
        return AnswerTo(pages, path, query);
      });
  if (!server.ok()) return Fail("web", server.status().message(), kExitFailed);
  Print(absl::StrCat(guard.Address((*server)->port()), "\n"));
  if (!FlushOutput("web")) return kExitFailed;
  (*server)->Run();
  std::_Exit(0);  // nobody waits for the answer under way
}

}  // namespace

void AddWeb(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<WebOptions>();
  CLI::App* verb =
      app.add_subcommand("web", "Jobs as pages of a browser on this host, live");
  verb->footer(
      "Prints an address for a browser of this host, and serves until Ctrl-C: the list "
      "of jobs, the\npage of each (lull report --html) as the job goes on, and "
      "comparisons (lull diff). It only\nreads. It listens on 127.0.0.1, and the token "
      "in the address is the key: give it to nobody.\nFor a browser elsewhere: ssh -L "
      "8000:127.0.0.1:8000 HOST.\n\n"
      "Example:\n  lull web --port 8000");
  verb->add_option("--port", options->port,
                   "port of 127.0.0.1 (default: any that is free)")
      ->type_name("PORT");
  AddCollectorOptions(verb, &options->collector);
  AddTerminalOptions(verb, /*answers=*/false);
  verb->callback([options, exit_code] { *exit_code = Run(*options); });
}

}  // namespace lull
