#include "cli/render/gpu_words.h"
#include "cli/render/json.h"
#include "cli/render/json_parts.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"

namespace lull {

Json RegionsJson(const v1::ReportReply& reply) {
  Json rows = Json::array();
  for (const v1::RegionRow& row : reply.regions().regions()) {
    const bool traced = row.traced_ns() > 0;
    Json causes = Json::array();
    for (const v1::CauseRow& cause : row.causes()) {
      causes.push_back(
          {{"cause", CauseKey(cause.cause())}, {"total_ms", Ms(cause.total_ns())}});
    }
    Json path = Json::array();
    for (const std::string& outer : row.path()) path.push_back(outer);
    rows.push_back({{"name", row.name()},
                    {"path", std::move(path)},
                    {"count", row.count()},
                    {"total_ms", Ms(row.total_ns())},
                    {"max_ms", Ms(row.max_ns())},
                    {"traced_ms", Ms(row.traced_ns())},
                    {"gpu_busy_ms", MsIf(traced, row.gpu_busy_ns())},
                    {"causes", traced ? std::move(causes) : Json(nullptr)},
                    {"site", SiteJson(row.site())}});
  }
  return AnswerJson(reply, {{"regions", std::move(rows)},
                            {"unnamed", reply.regions().unnamed()},
                            {"unopened", reply.regions().unopened()},
                            {"unavailable_processes", reply.regions().unavailable()}});
}

// What the above prints.
namespace schema {

Json Regions() {
  Json causes = ListOf(Object({{"cause", Causes()}, {"total_ms", Amount()}}));
  Json row = Object({{"name", Text()},
                     {"path", ListOf(Text())},
                     {"count", Count()},
                     {"total_ms", Amount()},
                     {"max_ms", Amount()},
                     {"traced_ms", Amount()},
                     {"gpu_busy_ms", AmountOrNull()},
                     {"causes", OrNull(std::move(causes))},
                     {"site", Ref("site")}});
  return Answer({{"regions", ListOf(std::move(row))},
                 {"unnamed", Count()},
                 {"unopened", Count()},
                 {"unavailable_processes", Count()}});
}

}  // namespace schema
}  // namespace lull
