#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/render/diff.h"
#include "cli/render/json_parts.h"
#include "daemon/words/cause_words.h"

namespace lull {
namespace {

using compare::Comparison;
using compare::Quantity;
using compare::RunFacts;
using compare::StepTime;
using compare::SyncChange;
using compare::SyncRate;

Json RunsJson(const std::vector<RunFacts>& runs) {
  Json rows = Json::array();
  for (const RunFacts& run : runs) {
    rows.push_back({{"id", run.job.id()},
                    {"name", TextOrNull(run.job.name())},
                    {"command", run.job.command()},
                    {"processes", run.processes},
                    {"steps", run.steps},
                    {"dropped_steps", run.dropped},
                    {"step_ms", IfPositive(run.step_ms)}});
  }
  return rows;
}

Json StepJson(const std::optional<StepTime>& step) {
  if (!step || !step->change) return nullptr;
  return {{"a", step->a_ms},
          {"b", step->b_ms},
          {"change_percent", step->change->percent},
          {"low_percent", step->change->low_percent},
          {"high_percent", step->change->high_percent},
          // False: the interval is of these very runs, and proves nothing.
          {"known", step->known},
          {"mean_a", step->mean_a_ms},
          {"mean_b", step->mean_b_ms},
          {"spread_percent", OrNull(step->spread_percent)},
          {"detectable_percent", If(step->known, step->change->detectable_percent)},
          {"asked_percent", step->asked_percent},
          {"runs_needed", OrNull(step->runs_needed)}};
}

Json SyncRows(const std::vector<SyncChange>& changes) {
  Json rows = Json::array();
  for (const SyncChange& change : changes) {
    const SyncRate &a = change.a, &b = change.b;
    const bool in_a = a.calls > 0, in_b = b.calls > 0;
    rows.push_back({{"api", in_b ? b.api : a.api},
                    {"site", SiteJson(in_b ? b.site : a.site)},
                    {"a_site", in_a ? SiteJson(a.site) : Json(nullptr)},
                    {"b_site", in_b ? SiteJson(b.site) : Json(nullptr)},
                    {"edited", change.edited},
                    {"a_calls", a.calls},
                    {"b_calls", b.calls},
                    {"a_calls_per_step", a.calls_per_step},
                    {"b_calls_per_step", b.calls_per_step},
                    {"a_blocked_ms_per_step", a.blocked_ms_per_step},
                    {"b_blocked_ms_per_step", b.blocked_ms_per_step},
                    {"a_wasted_ms_per_step", OrNull(a.wasted_ms_per_step)},
                    {"b_wasted_ms_per_step", OrNull(b.wasted_ms_per_step)}});
  }
  return rows;
}

void AddQuantity(const char* unit, const Quantity& quantity, Json* row) {
  const std::string of = unit;
  (*row)["a_" + of] = quantity.a;
  (*row)["b_" + of] = quantity.b;
  (*row)["low_" + of] = OrNull(quantity.low);
  (*row)["high_" + of] = OrNull(quantity.high);
}

template <typename Row, typename Name>
Json TimeRows(const std::vector<Row>& rows, size_t top, Name name) {
  Json json = Json::array();
  for (size_t i = 0; i < rows.size() && (top == 0 || i < top); ++i) {
    Json row = name(rows[i]);
    AddQuantity("ms_per_step", rows[i].ms, &row);
    json.push_back(std::move(row));
  }
  return json;
}

Json MemoryJson(const std::vector<compare::MemoryChange>& rows) {
  Json json = Json::array();
  for (const compare::MemoryChange& change : rows) {
    Json row = {{"allocator", change.allocator}};
    AddQuantity("peak_bytes", change.peak_bytes, &row);
    AddQuantity("reserved_bytes", change.reserved_bytes, &row);
    json.push_back(std::move(row));
  }
  return json;
}

Json Sentences(const std::vector<std::string>& sentences) {
  Json json = Json::array();
  for (const std::string& sentence : sentences) json.push_back(sentence);
  return json;
}

}  // namespace

const char* VerdictKey(compare::Verdict verdict) {
  switch (verdict) {
    case compare::Verdict::kFaster:
      return "faster";
    case compare::Verdict::kSlower:
      return "slower";
    case compare::Verdict::kSyncsChanged:
      return "syncs_changed";
    case compare::Verdict::kNoDifference:
      return "no_difference_shown";
    case compare::Verdict::kCannotJudge:
      break;
  }
  return "cannot_judge";
}

Json DiffJson(const Comparison& comparison, size_t top) {
  const compare::SyncChanges& syncs = comparison.syncs;
  return {{"verdict", VerdictKey(comparison.verdict)},
          {"headline", DiffHeadline(comparison)},
          {"reasons", Sentences(comparison.reasons)},
          {"warnings", Sentences(comparison.warnings)},
          {"a", RunsJson(comparison.a)},
          {"b", RunsJson(comparison.b)},
          {"step_ms", StepJson(comparison.step)},
          {"traced_steps", comparison.traced_steps},
          {"sync_points",
           {{"gone", SyncRows(syncs.gone)},
            {"new", SyncRows(syncs.came)},
            {"changed", SyncRows(syncs.changed)},
            {"moved", SyncRows(syncs.moved)},
            {"rare", SyncRows(syncs.rare)},
            {"same", SyncRows(syncs.same)}}},
          {"causes", TimeRows(comparison.causes, 0,
                              [](const compare::CauseChange& row) {
                                return Json{{"cause", CauseKey(row.cause)}};
                              })},
          {"host_waits", TimeRows(comparison.host, 0,
                                  [](const compare::HostChange& row) {
                                    return Json{{"kind", row.what}};
                                  })},
          {"kernels", TimeRows(comparison.kernels, top,
                               [](const compare::KernelChange& row) {
                                 return Json{{"name", row.name},
                                             {"a_calls_per_step", row.calls.a},
                                             {"b_calls_per_step", row.calls.b}};
                               })},
          {"functions", TimeRows(comparison.functions, top,
                                 [](const compare::FunctionChange& row) {
                                   return Json{{"site", SiteJson(row.site)}};
                                 })},
          {"memory", MemoryJson(comparison.memory)}};
}

}  // namespace lull
