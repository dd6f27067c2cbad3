// `lull allocs`: memory that was allocated.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddAllocs(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "allocs";
  verb.description =
      "Device, pinned and tensor memory that was allocated, by source line";
  verb.example = "Examples:\n  lull allocs\n  lull allocs resnet --by function --json";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetAllocations(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(AllocationsJson(*reply))
                        : AllocationsText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
