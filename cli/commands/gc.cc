// `lull gc`: pauses of the Python garbage collector.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddGc(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "gc";
  verb.description =
      "Pauses of the Python garbage collector, and the lines that set them off";
  verb.example = "Example:\n  lull gc --top 5";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetGcPauses(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(GcJson(*reply)) : GcText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
