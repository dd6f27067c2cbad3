#include "cli/render/gpu_words.h"
#include "cli/render/json.h"
#include "cli/render/json_parts.h"

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

}  // namespace lull
