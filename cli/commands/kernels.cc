// `lull kernels`: what ran on the GPU.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddKernels(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "kernels";
  verb.description = "What ran on the GPU: kernels by time, copies by direction";
  verb.example = "Examples:\n  lull kernels\n  lull kernels resnet --top 0 --json";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetKernels(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(KernelsJson(*reply))
                        : KernelsText(*reply, request.group_by());
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
