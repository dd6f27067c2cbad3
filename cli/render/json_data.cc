#include <utility>

#include "cli/render/json.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/format.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

Json LoadersJson(const v1::DataLoading& data) {
  return RowsJson(data.loaders(), [&](const v1::LoaderRow& row, Json& json) {
    if (row.blocked_ns() > row.total_ns()) SetNull(json, {"blocked_ms"});
  });
}

// For one batch; null where their number is not known.
Json PerBatch(uint64_t ns, uint64_t batches) {
  return If(batches > 0, Ms(ns) / static_cast<double>(batches));
}

void AddShare(Json& json, const std::string& name, const std::string& interval,
              bool known, const v1::SampledShare& share) {
  json[name + "_percent"] = If(known, share.percent());
  json[interval + "low_percent"] = If(known, share.low_percent());
  json[interval + "high_percent"] = If(known, share.high_percent());
}

template <typename Rows>
void AddParts(const Rows& rows, const std::string& role, uint64_t batches,
              Json& parts) {
  for (const v1::LoaderPartRow& row : rows) {
    Json json = {{"role", role},
                 {"part", LoaderPartKey(row.part())},
                 {"samples", row.samples()},
                 {"total_ms", Ms(row.time_ns())},
                 {"per_batch_ms", PerBatch(row.time_ns(), batches)}};
    AddShare(json, "share", "", row.has_share(), row.share());
    parts.push_back(std::move(json));
  }
}

Json LinesJson(const v1::DataLoading& data) {
  Json rows = Json::array();
  for (const v1::LoaderLine& line : data.lines()) {
    Json json = {{"role", RoleKey(line.role())},
                 {"part", LoaderPartKey(line.part())},
                 {"file", line.site().file()},
                 {"line", line.site().line()},
                 {"function", line.site().function()},
                 {"samples", line.samples()},
                 {"own_samples", line.own_samples()},
                 {"total_ms", Ms(line.total_ns())},
                 {"own_ms", Ms(line.own_ns())},
                 {"per_batch_ms", PerBatch(line.total_ns(), BatchesOf(line, data))}};
    AddShare(json, "share", "", line.has_total(), line.total());
    AddShare(json, "own", "own_", line.has_own(), line.own());
    json["callee"] = line.has_callee() ? SiteJson(line.callee()) : Json(nullptr);
    rows.push_back(std::move(json));
  }
  return rows;
}

Json BusyJson(const v1::LoaderWorkers& workers) {
  Json json = {{"samples", workers.samples()}};
  AddShare(json, "share", "", workers.has_busy(), workers.busy());
  json["mean"] = IfPositive(workers.busy_mean());
  json["p95"] = IfPositive(workers.busy_95());
  json["waiting_ms"] = Ms(workers.waiting_ns());
  json["ready_ms"] = Ms(workers.ready_ns());
  json["unknown_ms"] = Ms(workers.unknown_ns());
  json["over_time"] = RowsJson(workers.over_time());
  return json;
}

Json EnoughJson(const v1::LoaderWorkers& workers) {
  const bool known = workers.no_estimate().empty();
  return {{"workers", If(known, workers.enough())},
          {"low", If(known, workers.enough_low())},
          {"high", If(known, workers.enough_high())},
          {"unknown_because", TextOrNull(workers.no_estimate())}};
}

}  // namespace

Json DataJson(const v1::ReportReply& reply) {
  const v1::DataLoading& data = reply.data();
  const v1::LoaderWorkers& workers = data.workers();
  const bool any = data.has_workers();
  const uint64_t batches = any ? data.batches() : data.own_batches();
  Json parts = Json::array();
  AddParts(workers.parts(), RoleKey(v1::HOST_SAMPLE_ROLE_LOADER), data.batches(),
           parts);
  AddParts(data.parts(), RoleKey(v1::HOST_SAMPLE_ROLE_MAIN), data.own_batches(), parts);
  return AnswerJson(reply, {{"loaders", LoadersJson(data)},
                            {"workers", workers.workers()},
                            {"training_processes", If(any, workers.owners())},
                            {"batches", If(batches > 0, batches)},
                            {"busy", any ? BusyJson(workers) : Json(nullptr)},
                            {"enough", any ? EnoughJson(workers) : Json(nullptr)},
                            {"parts", std::move(parts)},
                            {"lines", LinesJson(data)}});
}

// What the above prints.
namespace schema {
namespace {

Json Parts() { return OneOf(KeysOf(*v1::LoaderPart_descriptor(), "other")); }

Json LoaderParts() {
  return ListOf(Object({{"role", OneOf({"loader", "main"})},
                        {"part", Parts()},
                        {"samples", Count()},
                        {"total_ms", Amount()},
                        {"per_batch_ms", AmountOrNull()},
                        {"share_percent", AmountOrNull()},
                        {"low_percent", AmountOrNull()},
                        {"high_percent", AmountOrNull()}}));
}

Json LoaderLines() {
  return ListOf(Object({{"role", Roles()},
                        {"part", Parts()},
                        {"file", Text()},
                        {"line", Whole()},
                        {"function", Text()},
                        {"samples", Count()},
                        {"own_samples", Count()},
                        {"total_ms", Amount()},
                        {"own_ms", Amount()},
                        {"per_batch_ms", AmountOrNull()},
                        {"share_percent", AmountOrNull()},
                        {"low_percent", AmountOrNull()},
                        {"high_percent", AmountOrNull()},
                        {"own_percent", AmountOrNull()},
                        {"own_low_percent", AmountOrNull()},
                        {"own_high_percent", AmountOrNull()},
                        {"callee", OrNull(Ref("site"))}}));
}

Json Busy() {
  return Object({{"samples", Count()},
                 {"share_percent", AmountOrNull()},
                 {"low_percent", AmountOrNull()},
                 {"high_percent", AmountOrNull()},
                 {"mean", AmountOrNull()},
                 {"p95", AmountOrNull()},
                 {"waiting_ms", Amount()},
                 {"ready_ms", Amount()},
                 {"unknown_ms", Amount()},
                 {"over_time", ListOfRows<v1::BusyWorkers>()}});
}

Json Enough() {
  return Object({{"workers", AmountOrNull()},
                 {"low", AmountOrNull()},
                 {"high", AmountOrNull()},
                 {"unknown_because", TextOrNull()}});
}

}  // namespace

Json Data() {
  return Answer(
      {{"loaders", ListOf(RowOf<v1::LoaderRow>().OrNull({"blocked_ms"}).Done())},
       {"workers", Count()},
       {"training_processes", OrNull(Count())},
       {"batches", OrNull(Count())},
       {"busy", OrNull(Busy())},
       {"enough", OrNull(Enough())},
       {"parts", LoaderParts()},
       {"lines", LoaderLines()}});
}

}  // namespace schema
}  // namespace lull
