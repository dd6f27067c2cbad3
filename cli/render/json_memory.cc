#include <utility>

#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"

namespace lull {
namespace {

Json PointsJson(const v1::MemoryRow& row) {
  return RowsJson(row.points(), [&](const v1::MemoryPoint&, Json& json) {
    if (!row.points_are_steps()) SetNull(json, {"step"});
    if (!row.reserved_known()) SetNull(json, {"reserved_bytes"});
  });
}

Json GrowthJson(const v1::MemoryRow& row) {
  if (!row.has_growth()) return nullptr;
  Json json = RowJson(row.growth());
  json["sites"] = RowsJson(row.growth().sites());
  return json;
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
                 {"reserved_bytes", If(known, row.reserved_bytes())},
                 {"reserved_peak_bytes", If(known, row.reserved_peak_bytes())},
                 {"growth", GrowthJson(row)}};
    if (details) {
      json["peak_at_ms"] = Ms(row.peak_time_ns());
      json["reserved_at_peak_bytes"] = If(known, row.reserved_at_peak_bytes());
      json["peak_sites"] = RowsJson(row.peak_sites());
      json["peak_others_bytes"] = row.peak_others_bytes();
      json["points"] = PointsJson(row);
    }
    rows.push_back(std::move(json));
  }
  return rows;
}

Json MemoryJson(const v1::ReportReply& reply) {
  return AnswerJson(reply, {{"memory", MemoryRowsJson(reply.memory(), true)},
                            {"malloc_retries", RowsJson(reply.memory().retries())},
                            {"unknown_frees", reply.memory().unknown_frees()}});
}

// What the above prints.
namespace schema {
namespace {

Json Growth() {
  return RowOf<v1::MemoryGrowth>().Set("sites", ListOfRows<v1::MemorySite>()).Done();
}

}  // namespace

Json MemoryRows(bool details) {
  Json row = {{"pid", Count()},
              {"rank", OrNull(Count())},
              {"allocator", Text()},
              {"device", OrNull(Count())},
              {"live_bytes", Whole()},
              {"peak_bytes", Whole()},
              {"reserved_bytes", OrNull(Whole())},
              {"reserved_peak_bytes", OrNull(Whole())},
              {"growth", OrNull(Growth())}};
  if (details) {
    row["peak_at_ms"] = Amount();
    row["reserved_at_peak_bytes"] = OrNull(Whole());
    row["peak_sites"] = ListOfRows<v1::MemorySite>();
    row["peak_others_bytes"] = Whole();
    row["points"] =
        ListOf(RowOf<v1::MemoryPoint>().OrNull({"step", "reserved_bytes"}).Done());
  }
  return ListOf(Object(std::move(row)));
}

Json Memory() {
  return Answer({{"memory", MemoryRows(/*details=*/true)},
                 {"malloc_retries", ListOfRows<v1::MallocRetries>()},
                 {"unknown_frees", Count()}});
}

}  // namespace schema
}  // namespace lull
