// `lull steps`: training steps and what they were made of.
#include "cli/commands/query_options.h"
#include "cli/commands/verbs.h"
#include "cli/render/human.h"
#include "cli/render/json.h"

namespace lull {

void AddSteps(CLI::App& app, int* exit_code) {
  QueryVerb verb;
  verb.name = "steps";
  verb.description = "Training steps and what they were made of";
  verb.example =
      "--top shows the newest steps; the median is over all after warm-up.\n\n"
      "Examples:\n  lull steps\n  lull steps resnet --rank 0 --top 50 --json";
  verb.answer = [](CollectorClient& client, const v1::ReportRequest& request,
                   const QueryOptions& options) -> absl::StatusOr<std::string> {
    auto reply = client.GetSteps(request);
    if (!reply.ok()) return reply.status();
    return options.json ? JsonText(StepsJson(*reply)) : StepsText(*reply);
  };
  AddQueryVerb(app, verb, exit_code);
}

}  // namespace lull
