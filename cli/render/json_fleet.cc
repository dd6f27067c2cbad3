#include <string>

#include "cli/render/fleet.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

Json WhenOrNull(uint64_t unix_ns) {
  return unix_ns == 0 ? Json(nullptr) : Json(FormatUtc(unix_ns));
}

template <typename Row>
void NullWithoutSite(const Row& row, Json& json) {
  if (row.file().empty()) SetNull(json, {"file", "line"});
  if (row.function().empty()) SetNull(json, {"function"});
}

}  // namespace

Json FleetJson(const v1::FleetReply& reply, const v1::FleetRequest& request) {
  return {
      {"store", KeyOf(reply.store(), "unknown")},
      {"url", TextOrNull(reply.url())},
      {"since", WhenOrNull(request.since_unix_ns())},
      {"until", WhenOrNull(request.until_unix_ns())},
      {"totals", RowJson(reply.totals())},
      {"causes", RowsJson(reply.causes())},
      {"lines", RowsJson(reply.lines(),
                         [](const v1::FleetLine& row, Json& json) {
                           NullWithoutSite(row, json);
                           if (row.api().empty()) SetNull(json, {"api"});
                         })},
      {"lines_left_out", reply.lines_left_out()},
      {"by", KeyOf(request.group_by(), "unknown")},
      {"groups", RowsJson(reply.groups())},
      {"groups_left_out", reply.groups_left_out()},
      {"jobs", RowsJson(reply.jobs(),
                        [](const v1::FleetJob& row, Json& json) {
                          Insert(json, "start_unix_ms", "started_at",
                                 WhenOrNull(row.start_unix_ns()));
                          json.erase("start_unix_ms");
                          json["tags"] = row.tags();
                          if (row.cause().empty()) SetNull(json, {"cause"});
                        })},
      {"jobs_left_out", reply.jobs_left_out()},
      {"late", RowsJson(reply.late(), [](const v1::FleetLate& row,
                                         Json& json) { NullWithoutSite(row, json); })},
      {"late_left_out", reply.late_left_out()},
      {"damaged_jobs", reply.damaged_jobs()},
  };
}

namespace schema {

Json Fleet() {
  return Object(
      {{"store", OneOf(KeysOf(*v1::FleetStore_descriptor(), "unknown"))},
       {"url", TextOrNull()},
       {"since", TextOrNull()},
       {"until", TextOrNull()},
       {"totals", RowOf<v1::FleetTotals>().Done()},
       {"causes", ListOfRows<v1::FleetCause>()},
       {"lines",
        ListOf(
            RowOf<v1::FleetLine>().OrNull({"file", "line", "function", "api"}).Done())},
       {"lines_left_out", Count()},
       {"by", OneOf(KeysOf(*v1::FleetGroup_descriptor(), "unknown"))},
       {"groups", ListOfRows<v1::FleetGroupRow>()},
       {"groups_left_out", Count()},
       {"jobs", ListOf(RowOf<v1::FleetJob>()
                           .Insert("start_unix_ms", "started_at", TextOrNull())
                           .Erase("start_unix_ms")
                           .Set("tags", ListOf(Text()))
                           .OrNull({"cause"})
                           .Done())},
       {"jobs_left_out", Count()},
       {"late",
        ListOf(RowOf<v1::FleetLate>().OrNull({"file", "line", "function"}).Done())},
       {"late_left_out", Count()},
       {"damaged_jobs", Count()}});
}

}  // namespace schema
}  // namespace lull
