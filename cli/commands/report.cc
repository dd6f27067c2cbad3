// `lull report`: everything about a job on one page.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddReport(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "report";
  verb.description = "Everything about a job on one page";
  verb.example =
      "Examples:\n  lull report\n  lull report resnet --json --top 0 > report.json";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetReport(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(ReportJson(*reply))
                        : ReportText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
