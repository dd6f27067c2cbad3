// `lull syncs`: where the host blocked until the GPU was done.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddSyncs(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "syncs";
  verb.description = "Where the host blocked until the GPU was done, by source line";
  verb.example =
      "Examples:\n  lull syncs\n  lull syncs 3f9a1c --by stack --top 5\n  lull syncs "
      "--rank 0 --since 2m --until 10m --json";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetSyncs(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(SyncsJson(*reply))
                        : SyncsText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
