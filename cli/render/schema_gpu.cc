// What json_gpu.cc prints.
#include "cli/render/schema.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "cli/render/schema_rows.h"
#include "query.pb.h"

namespace lull::schema {
namespace {

Json Doing() {
  return ListOf(Object({{"file", Text()},
                        {"line", Whole()},
                        {"function", Text()},
                        {"samples", Count()},
                        {"share_percent", AmountOrNull()},
                        {"self_percent", AmountOrNull()},
                        {"low_percent", AmountOrNull()},
                        {"high_percent", AmountOrNull()},
                        {"own_percent", AmountOrNull()},
                        {"own_low_percent", AmountOrNull()},
                        {"own_high_percent", AmountOrNull()},
                        {"callee", OrNull(Ref("site"))},
                        {"line_is_function_start", Flag()}},
                       {"line_is_function_start"}));
}

Json GapRegions() {
  return ListOf(Object({{"name", Text()},
                        {"path", ListOf(Text())},
                        {"total_ms", Amount()},
                        {"share_percent", Amount()}}));
}

Row Step() {
  return RowOf<v1::StepRow>()
      .OrNull({"kernel_ms", "memcpy_ms", "memset_ms", "communication_ms"})
      .OrNull({"duration_ms", "runtime_ms", "data_ms", "host_ms", "other_ms"});
}

Json PhaseParts() {
  return ListOf(
      Object({{"phase", OneOf({"setup", "steady"})},
              {"part", OneOf(KeysOf(*v1::PhasePartKind_descriptor(), "other"))},
              {"time_ms", Amount()},
              {"share_percent", AmountOrNull()},
              {"low_percent", AmountOrNull()},
              {"high_percent", AmountOrNull()},
              {"samples", OrNull(Count())}}));
}

}  // namespace

Json CauseRows() {
  return ListOf(RowOf<v1::CauseRow>()
                    .Set("cause", Causes())
                    .Set("share_percent", Amount())
                    .Done());
}

Json GapRows() {
  return ListOf(RowOf<v1::GapRow>()
                    .Set("cause", Causes())
                    .Set("api", TextOrNull())
                    .Insert("max_ms", "share_percent", Amount())
                    .Insert("samples", "doing", Doing())
                    .Insert("doing", "regions", GapRegions())
                    .Done());
}

Json KernelRows() {
  return ListOf(RowOf<v1::KernelRow>()
                    .OrNull({"blocks_per_sm", "occupancy_percent", "operator"})
                    .Insert("total_ms", "avg_ms", AmountOrNull())
                    .Insert("max_ms", "share_percent", Amount())
                    .Done());
}

Json CopyRows() {
  return ListOf(
      RowOf<v1::CopyRow>().OrNull({"memory"}).Set("gb_per_s", AmountOrNull()).Done());
}

Json StepRows() { return ListOf(Step().Done()); }

Json StepTotals() {
  Json median =
      Step().Erase("pid").Erase("rank").Erase("number").Erase("start_ms").Done();
  return {{"source", TextOrNull()},
          {"count", Count()},
          {"median", OrNull(std::move(median))},
          {"gpu_utilization_percent", OrNull(Number())},
          {"sm_efficiency_percent", AmountOrNull()},
          {"occupancy_percent", AmountOrNull()},
          {"tensor_core_percent", OrNull(Number())},
          {"phases", PhaseParts()}};
}

Json Devices() {
  return ListOf(RowOf<v1::DeviceRow>()
                    .OrNull({"name", "multiprocessors", "busy_ms"})
                    .Set("compute_capability", AmountOrNull())
                    .Set("idle_ms", AmountOrNull())
                    .Done());
}

Json Gaps() {
  return Answer({{"gpu", Ref("gpu")},
                 {"devices", Devices()},
                 {"region", TextOrNull()},
                 {"causes", CauseRows()},
                 {"gaps", GapRows()}});
}

Json Kernels() {
  return Answer({{"gpu", Ref("gpu")},
                 {"kernels", KernelRows()},
                 {"copies", CopyRows()},
                 {"total_ms", AmountOrNull()},
                 {"total_calls", Count()}});
}

Json Steps() {
  Json body = {{"gpu", Ref("gpu")}, {"steps", StepRows()}};
  body.update(StepTotals());
  return Answer(std::move(body));
}

Json Operators() {
  Json row = Object({{"name", Text()},
                     {"pass", OneOf({"forward", "backward", "optimizer", "unknown"})},
                     {"calls", Null()},
                     {"launches", Count()},
                     {"own_launches", Count()},
                     {"gpu_ms", AmountOrNull()},
                     {"own_gpu_ms", AmountOrNull()},
                     {"gpu_percent", AmountOrNull()},
                     {"own_gpu_percent", AmountOrNull()},
                     {"allocations", OrNull(Count())},
                     {"allocated_bytes", OrNull(Count())},
                     {"own_allocated_bytes", OrNull(Count())},
                     {"site", Ref("site")},
                     {"stack", ListOf(Ref("frame"))}});
  return Answer({{"gpu", Ref("gpu")},
                 {"ops", ListOf(std::move(row))},
                 {"total_ops", Count()},
                 {"total_gpu_ms", AmountOrNull()},
                 {"total_launches", Count()},
                 {"unknown_gpu_ms", AmountOrNull()},
                 {"unknown_launches", Count()},
                 {"allocated_bytes", Count()},
                 {"known_bytes", Count()}});
}

}  // namespace lull::schema
