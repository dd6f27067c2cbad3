// `lull waits`: what the host waited for.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddWaits(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "waits";
  verb.description = "What the host waited for: data, locks, io, by source line";
  verb.example = "Examples:\n  lull waits\n  lull waits --by stack --since 90s";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetWaits(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(WaitsJson(*reply))
                        : WaitsText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
