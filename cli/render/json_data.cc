#include "cli/render/json.h"
#include "cli/render/json_parts.h"

namespace lull {

Json DataJson(const v1::ReportReply& reply) {
  Json rows = Json::array();
  for (const v1::LoaderRow& row : reply.data().loaders()) {
    rows.push_back(
        {{"loader", row.loader()},
         {"calls", row.calls()},
         {"total_ms", Ms(row.total_ns())},
         {"max_ms", Ms(row.max_ns())},
         {"blocked_ms", MsIf(row.blocked_ns() <= row.total_ns(), row.blocked_ns())},
         {"site", SiteJson(row.site())}});
  }
  Json json = {{"job", JobJson(reply.job())}, {"loaders", std::move(rows)}};
  AddTail(json, reply);
  return json;
}

}  // namespace lull
