// What json.cc prints.
#include "cli/render/schema.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "cli/render/schema_rows.h"
#include "query.pb.h"

namespace lull::schema {
namespace {

Json SyncPoints() {
  return ListOf(
      RowOf<v1::SyncPoint>()
          .OrNull({"judged_calls", "judged_blocked_ms", "needed_ms", "wasted_ms"})
          .Done());
}

Json Processes() {
  return ListOf(RowOf<v1::ProcessRow>()
                    .Set("native_stacks", Count())
                    .Set("gc_hook", Count())
                    .Set("cupti_version", TextOrNull())
                    .Set("step_hook", Count())
                    .Set("scope_hook", Count())
                    .OrNull({"busy_ms"})
                    .Done());
}

Json NonFinite() {
  return ListOf(RowOf<v1::NonFinite>().Erase("step_known").OrNull({"step"}).Done());
}

Json Summary() {
  return Object({{"working_ms", Amount()},
                 {"launches", Count()},
                 {"sync_blocked_ms", Amount()},
                 {"sync_calls", Count()},
                 {"data_wait_ms", Amount()},
                 {"host_wait_ms", Amount()},
                 {"gc_ms", Amount()},
                 {"gc_pauses", Count()},
                 {"allocated_bytes", Count()},
                 {"allocations", Count()},
                 {"gpu_utilization_percent", AmountOrNull()},
                 {"verdict", TextOrNull()},
                 {"advice", ListOf(RowOf<v1::Finding>().OrNull({"site"}).Done())}});
}

}  // namespace

Json Syncs() {
  return Answer({{"gpu", Ref("gpu")},
                 {"sync_points", SyncPoints()},
                 {"total_blocked_ms", Amount()},
                 {"total_calls", Count()}});
}

Json Allocations() {
  return Answer({{"allocation_sites", ListOfRows<v1::AllocationSite>()},
                 {"total_bytes", Count()},
                 {"total_calls", Count()},
                 {"unknown_frees", Count()}});
}

Json Gc() {
  return Answer({{"gc_pauses", ListOfRows<v1::GcPause>()},
                 {"total_ms", Amount()},
                 {"total_count", Count()}});
}

Json Waits() {
  return Answer({{"host_waits", ListOfRows<v1::HostWait>()},
                 {"total_ms", Amount()},
                 {"data_exact", Flag()}});
}

Json Report() {
  return Answer({{"summary", Summary()},
                 {"gpu", Ref("gpu")},
                 {"causes", CauseRows()},
                 {"gaps", GapRows()},
                 {"kernels", KernelRows()},
                 {"copies", CopyRows()},
                 {"steps", StepRows()},
                 {"step_totals", Object(StepTotals())},
                 {"non_finite", NonFinite()},
                 {"devices", Devices()},
                 {"processes", Processes()},
                 {"sync_points", SyncPoints()},
                 {"allocation_sites", ListOfRows<v1::AllocationSite>()},
                 {"memory", MemoryRows(/*details=*/false)},
                 {"malloc_retries", ListOfRows<v1::MallocRetries>()},
                 {"gc_pauses", ListOfRows<v1::GcPause>()},
                 {"host_waits", ListOfRows<v1::HostWait>()},
                 {"data_exact", Flag()}});
}

Json Jobs() {
  return Object({{"jobs", ListOf(Ref("job"))}, {"damaged_jobs", ListOf(Text())}},
                {"damaged_jobs"});
}

}  // namespace lull::schema
