// `lull memory`: what was live, and when, and where.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddMemory(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "memory";
  verb.description =
      "Live, peak and reserved memory, what made up the peak, growth per step, "
      "cudaMalloc retries";
  verb.example =
      "--top and --by are about the lines that made up the peak.\n\n"
      "Examples:\n  lull memory\n  lull memory resnet --rank 0 --since 2m --json";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetMemory(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(MemoryJson(*reply))
                        : MemoryText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
