#include <utility>

#include "cli/render/json.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"

namespace lull {

Json StacksJson(const v1::ReportReply& reply) {
  const v1::NewestStacks& stacks = reply.stacks();
  Json rows = RowsJson(stacks.stacks(), [](const v1::ThreadStack& row, Json& json) {
    if (!row.has_site()) SetNull(json, {"site"});
    json["threads"] = RowsJson(row.threads());
  });
  const bool steps = stacks.step_ns() > 0;
  return AnswerJson(reply, {{"stacks", std::move(rows)},
                            {"at_ms", Ms(stacks.at_ns())},
                            {"window_ms", Ms(stacks.window_ns())},
                            {"processes", stacks.processes()},
                            {"behind_ms", MsIf(!reply.job().ended(), stacks.behind_ns())},
                            {"since_step_ms", MsIf(steps, stacks.since_step_ns())},
                            {"step_ms", MsIf(steps, stacks.step_ns())}});
}

// What the above prints.
namespace schema {

Json Stacks() {
  return Answer({{"stacks", ListOf(RowOf<v1::ThreadStack>()
                                       .OrNull({"site"})
                                       .Set("threads", ListOfRows<v1::StackThread>())
                                       .Done())},
                 {"at_ms", Amount()},
                 {"window_ms", Amount()},
                 {"processes", Count()},
                 {"behind_ms", AmountOrNull()},
                 {"since_step_ms", AmountOrNull()},
                 {"step_ms", AmountOrNull()}});
}

}  // namespace schema
}  // namespace lull
