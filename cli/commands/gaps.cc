// `lull gaps`: why the GPU was idle, and between which lines.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddGaps(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "gaps";
  verb.description = "Why the GPU was idle, by cause and by lines before and after";
  verb.example =
      "Times are of traced time alone; see `lull run --help` on --gpu and "
      "--schedule.\n\n"
      "Examples:\n  lull gaps\n  lull gaps resnet --rank 0 --by stack --top 5";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetGaps(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(GapsJson(*reply))
                        : GapsText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
