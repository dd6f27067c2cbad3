// What json_hot.cc, json_data.cc, json_regions.cc and json_memory.cc print.
#include "cli/render/schema.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "cli/render/schema_rows.h"
#include "query.pb.h"

namespace lull::schema {
namespace {

Json HotRoles() {
  return ListOf(Object({{"role", Roles()},
                        {"samples", Count()},
                        {"time_ms", Amount()},
                        {"running_percent", AmountOrNull()},
                        {"ready_percent", AmountOrNull()},
                        {"blocked_percent", AmountOrNull()},
                        {"no_python_percent", AmountOrNull()},
                        {"failed_percent", AmountOrNull()},
                        {"cut_percent", AmountOrNull()}}));
}

Json HotLines() {
  return ListOf(Object({{"role", Roles()},
                        {"file", Text()},
                        {"line", Whole()},
                        {"function", Text()},
                        {"samples", Count()},
                        {"self_samples", Count()},
                        {"self_ms", Amount()},
                        {"total_ms", Amount()},
                        {"self_percent", AmountOrNull()},
                        {"self_low_percent", AmountOrNull()},
                        {"self_high_percent", AmountOrNull()},
                        {"total_percent", AmountOrNull()},
                        {"low_percent", AmountOrNull()},
                        {"high_percent", AmountOrNull()},
                        {"running_percent", AmountOrNull()},
                        {"ready_percent", AmountOrNull()},
                        {"blocked_percent", AmountOrNull()},
                        {"cut", Flag()},
                        {"stack", ListOf(Ref("frame"))},
                        {"node", TextOrNull()},
                        {"backward_of", OrNull(Ref("site"))},
                        {"forward_site", OrNull(Ref("site"))}},
                       {"node", "backward_of", "forward_site"}));
}

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

Json Growth() {
  return RowOf<v1::MemoryGrowth>().Set("sites", ListOfRows<v1::MemorySite>()).Done();
}

}  // namespace

Json Hot() {
  return Answer({{"region", TextOrNull()},
                 {"roles", HotRoles()},
                 {"lines", HotLines()},
                 {"samples", RowOf<v1::HotSamples>()
                                 .Set("denied_processes", Count())
                                 .Set("unreadable_processes", Count())
                                 .Done()}});
}

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

}  // namespace lull::schema
