#include <string>
#include <utility>

#include "cli/render/json.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/enum_key.h"

namespace lull {
namespace {

Json CulpritsJson(const v1::RankRow& row) {
  Json culprits = Json::array();
  for (const v1::LateCause& cause : row.culprits()) {
    const bool known = cause.has_site();
    culprits.push_back({{"cause", cause.cause()},
                        {"file", If(known, cause.site().file())},
                        {"line", If(known, cause.site().line())},
                        {"function", If(known, cause.site().function())},
                        {"steps", cause.steps()},
                        {"total_ms", Ms(cause.total_ns())},
                        {"cost_to_others_ms", Ms(cause.cost_ns())}});
  }
  return culprits;
}

}  // namespace

Json RanksJson(const v1::ReportReply& reply) {
  const v1::Ranks& ranks = reply.ranks();
  const std::string kind = KeyOf(ranks.error_kind(), "none");
  const bool known = kind != "none";
  const bool on_device = ranks.on_device();
  return AnswerJson(
      reply,
      {{"ranks", RowsJson(ranks.ranks(),
                          [&](const v1::RankRow& row, Json& json) {
                            if (row.step_ns() == 0) SetNull(json, {"step_ms"});
                            if (!on_device) {
                              SetNull(json, {"communication_ms", "exposed_ms"});
                            }
                            json["culprits"] = CulpritsJson(row);
                          })},
       {"clock", {{"error_ns", If(known, ranks.error_ns())}, {"error_kind", kind}}},
       {"late_stretches", RowsJson(ranks.late_stretches())},
       {"on_device", ranks.on_device()},
       {"world_size", ranks.world_size()},
       {"collectives", ranks.collectives()},
       {"steps", ranks.steps()},
       {"steps_known", !ranks.counts_collectives()},
       {"unexplained_ms", Ms(ranks.unexplained_ns())},
       {"unmatched_ms", Ms(ranks.unmatched_ns())},
       {"looked_at",
        {{"start_ms", Ms(ranks.start_ns())},
         {"end_ms", Ms(ranks.end_ns())},
         {"cut", ranks.cut()}}}});
}

// What the above prints.
namespace schema {

Json Ranks() {
  Json culprits = ListOf(Object({{"cause", Text()},
                                 {"file", TextOrNull()},
                                 {"line", OrNull(Whole())},
                                 {"function", TextOrNull()},
                                 {"steps", Count()},
                                 {"total_ms", Amount()},
                                 {"cost_to_others_ms", Amount()}}));
  return Answer(
      {{"ranks", ListOf(RowOf<v1::RankRow>()
                            .OrNull({"step_ms", "communication_ms", "exposed_ms"})
                            .Set("culprits", std::move(culprits))
                            .Done())},
       {"clock", Object({{"error_ns", OrNull(Count())},
                         {"error_kind", OneOf({"none", "bound", "fiducial"})}})},
       {"late_stretches", ListOf(RowOf<v1::LateStretch>().Done())},
       {"on_device", Flag()},
       {"world_size", Count()},
       {"collectives", Count()},
       {"steps", Count()},
       {"steps_known", Flag()},
       {"unexplained_ms", Amount()},
       {"unmatched_ms", Amount()},
       {"looked_at",
        Object({{"start_ms", Amount()}, {"end_ms", Amount()}, {"cut", Flag()}})}});
}

}  // namespace schema
}  // namespace lull
