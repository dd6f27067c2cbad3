// What diff_json.cc prints.
#include <utility>

#include "cli/render/schema.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"

namespace lull::schema {
namespace {

Json ComparedRuns() {
  return ListOf(Object({{"id", Text()},
                        {"name", TextOrNull()},
                        {"command", Text()},
                        {"processes", Count()},
                        {"steps", Count()},
                        {"dropped_steps", Count()},
                        {"step_ms", AmountOrNull()}}));
}

Json ComparedSteps() {
  return OrNull(Object({{"a", Amount()},
                        {"b", Amount()},
                        {"change_percent", Number()},
                        {"low_percent", Number()},
                        {"high_percent", Number()},
                        {"known", Flag()},
                        {"mean_a", Amount()},
                        {"mean_b", Amount()},
                        {"spread_percent", AmountOrNull()},
                        {"detectable_percent", AmountOrNull()},
                        {"asked_percent", Amount()},
                        {"runs_needed", OrNull(Count())}}));
}

Json ComparedSyncs() {
  return ListOf(Object({{"api", Text()},
                        {"site", Ref("site")},
                        {"a_site", OrNull(Ref("site"))},
                        {"b_site", OrNull(Ref("site"))},
                        {"edited", Flag()},
                        {"a_calls", Count()},
                        {"b_calls", Count()},
                        {"a_calls_per_step", Amount()},
                        {"b_calls_per_step", Amount()},
                        {"a_blocked_ms_per_step", Amount()},
                        {"b_blocked_ms_per_step", Amount()},
                        {"a_wasted_ms_per_step", AmountOrNull()},
                        {"b_wasted_ms_per_step", AmountOrNull()}}));
}

// low and high are those of the difference, and may be below 0.
void AddComparedQuantity(const std::string& unit, Json& row) {
  row["a_" + unit] = Amount();
  row["b_" + unit] = Amount();
  row["low_" + unit] = OrNull(Number());
  row["high_" + unit] = OrNull(Number());
}

Json ComparedTimes(Json row) {
  AddComparedQuantity("ms_per_step", row);
  return ListOf(Object(std::move(row)));
}

Json ComparedMemory() {
  Json row = {{"allocator", Text()}};
  AddComparedQuantity("peak_bytes", row);
  AddComparedQuantity("reserved_bytes", row);
  return ListOf(Object(std::move(row)));
}

}  // namespace

Json Diff() {
  Json syncs = Object({{"gone", ComparedSyncs()},
                       {"new", ComparedSyncs()},
                       {"changed", ComparedSyncs()},
                       {"moved", ComparedSyncs()},
                       {"rare", ComparedSyncs()},
                       {"same", ComparedSyncs()}});
  return Object({{"verdict", OneOf({"faster", "slower", "syncs_changed",
                                    "no_difference_shown", "cannot_judge"})},
                 {"headline", Text()},
                 {"reasons", ListOf(Text())},
                 {"warnings", ListOf(Text())},
                 {"a", ComparedRuns()},
                 {"b", ComparedRuns()},
                 {"step_ms", ComparedSteps()},
                 {"traced_steps", Flag()},
                 {"sync_points", std::move(syncs)},
                 {"causes", ComparedTimes({{"cause", Causes()}})},
                 {"host_waits", ComparedTimes({{"kind", Text()}})},
                 {"kernels", ComparedTimes({{"name", Text()},
                                            {"a_calls_per_step", Amount()},
                                            {"b_calls_per_step", Amount()}})},
                 {"functions", ComparedTimes({{"site", Ref("site")}})},
                 {"memory", ComparedMemory()}});
}

}  // namespace lull::schema
