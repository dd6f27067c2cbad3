#include "cli/render/json_memory.h"

#include <utility>

#include "cli/render/json_parts.h"

namespace lull {
namespace {

Json BytesIf(bool known, int64_t bytes) { return known ? Json(bytes) : Json(nullptr); }

template <typename Sites>
Json SitesJson(const Sites& sites) {
  Json rows = Json::array();
  for (const v1::MemorySite& site : sites) {
    rows.push_back({{"bytes", site.bytes()},
                    {"blocks", site.blocks()},
                    {"site", SiteJson(site.site())},
                    {"stack", StackJson(site.stack(), false)},
                    {"native_stack", StackJson(site.native_stack(), true)}});
  }
  return rows;
}

Json PointsJson(const v1::MemoryRow& row) {
  Json points = Json::array();
  for (const v1::MemoryPoint& point : row.points()) {
    points.push_back(
        {{"step", row.points_are_steps() ? Json(point.step()) : Json(nullptr)},
         {"time_ms", Ms(point.time_ns())},
         {"live_bytes", point.live_bytes()},
         {"reserved_bytes", BytesIf(row.reserved_known(), point.reserved_bytes())}});
  }
  return points;
}

Json GrowthJson(const v1::MemoryRow& row) {
  if (!row.has_growth()) return nullptr;
  const v1::MemoryGrowth& growth = row.growth();
  return {{"bytes_per_step", growth.bytes_per_step()},
          {"first_step", growth.first_step()},
          {"last_step", growth.last_step()},
          {"bytes", growth.bytes()},
          {"sites", SitesJson(growth.sites())}};
}

}  // namespace

Json MemoryRowsJson(const v1::Memory& reply, bool details) {
  Json rows = Json::array();
  for (const v1::MemoryRow& row : reply.rows()) {
    bool known = row.reserved_known();
    Json json = {{"pid", row.pid()},
                 {"rank", RankJson(row.rank())},
                 {"allocator", row.allocator()},
                 {"device", RankJson(row.device())},
                 {"live_bytes", row.live_bytes()},
                 {"peak_bytes", row.peak_bytes()},
                 {"reserved_bytes", BytesIf(known, row.reserved_bytes())},
                 {"reserved_peak_bytes", BytesIf(known, row.reserved_peak_bytes())},
                 {"growth", GrowthJson(row)}};
    if (details) {
      json["peak_at_ms"] = Ms(row.peak_time_ns());
      json["reserved_at_peak_bytes"] = BytesIf(known, row.reserved_at_peak_bytes());
      json["peak_sites"] = SitesJson(row.peak_sites());
      json["peak_others_bytes"] = row.peak_others_bytes();
      json["points"] = PointsJson(row);
    }
    rows.push_back(std::move(json));
  }
  return rows;
}

Json MallocRetriesJson(const v1::Memory& reply) {
  Json rows = Json::array();
  for (const v1::MallocRetries& row : reply.retries()) {
    rows.push_back({{"pid", row.pid()},
                    {"rank", RankJson(row.rank())},
                    {"failed_calls", row.failed_calls()},
                    {"retries", row.retries()},
                    {"succeeded", row.succeeded()},
                    {"total_ms", Ms(row.total_ns())},
                    {"site", SiteJson(row.site())}});
  }
  return rows;
}

Json MemoryJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"memory", MemoryRowsJson(reply.memory(), true)},
               {"malloc_retries", MallocRetriesJson(reply.memory())},
               {"unknown_frees", reply.memory().unknown_frees()}};
  AddTail(json, reply);
  return json;
}

}  // namespace lull
