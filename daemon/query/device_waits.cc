#include "daemon/query/device_waits.h"

#include <algorithm>
#include <string>

#include "daemon/aggregate/wait_kind.h"
#include "query.pb.h"

namespace lull::query {
namespace {

using aggregate::Series;

// Kernels, and what they waited for on the device.
constexpr char kOfGpu[] = "gpu";

}  // namespace

// 0: nobody knows, and nothing may be told of that time. Where the cause is code, it is
// none that was recorded: UINT32_MAX.
uint32_t DeviceWaits::CauseOf(RankPart& part, const Series& idle) {
  const uint32_t line = causes_.LineOf(part, idle.line_site);
  switch (static_cast<v1::GapCause>(aggregate::CauseOf(idle))) {
    case v1::GAP_CAUSE_GC:
      // A collection lies where garbage was made enough, not at its line.
      return causes_.Number("gc", 0);
    case v1::GAP_CAUSE_ALLOCATOR:
      return causes_.Number("allocator", line);
    case v1::GAP_CAUSE_DATA_WAIT:
      return causes_.Number("data", line);
    case v1::GAP_CAUSE_GIL_WAIT:
      return causes_.Number("gil", line);
    case v1::GAP_CAUSE_SYNC:
      return causes_.Number("sync", line);
    case v1::GAP_CAUSE_RUN_QUEUE:
      return causes_.Number("run_queue", 0);
    case v1::GAP_CAUSE_HOST_WAIT:
      return causes_.Number(aggregate::WaitKindName(aggregate::ClassifyWait(
                                part.names->Api(idle.api), false, {}, {})),
                            line);
    case v1::GAP_CAUSE_HOST_CODE:
    case v1::GAP_CAUSE_LAUNCH_BOUND:
    case v1::GAP_CAUSE_LAUNCH_CALL:
      return UINT32_MAX;
    case v1::GAP_CAUSE_LAUNCH_LATENCY:
    case v1::GAP_CAUSE_DEPENDENCY:
      return causes_.Number(kOfGpu, 0);
    default:
      return 0;
  }
}

void DeviceWaits::Fill(const DeviceRank& device, const std::vector<Series>& series,
                       const std::vector<ranks::Ended>& kernels,
                       const std::vector<ranks::Identity>& identities,
                       uint64_t error_ns, RankPart& part, ranks::Rank* out) {
  out->clock = part.clock;
  out->times_error_ns = error_ns;
  for (size_t i = 0; i < kernels.size(); ++i) {
    ranks::Stretch wait =
        part.Common(kernels[i].start_ns, kernels[i].end_ns, kernels[i].function);
    if (identities[i].collective == 0) {
      wait.what = 0;
      out->spent.push_back(wait);
      continue;
    }
    wait.collective = identities[i].collective;
    wait.members = identities[i].members;
    wait.group = identities[i].group;
    out->waits.push_back(wait);
  }
  const DeviceStretch* told = nullptr;
  for (const DeviceStretch& idle : device.idle()) {
    const uint32_t cause = CauseOf(part, series[idle.series]);
    if (cause == UINT32_MAX) continue;
    const bool of_sync = aggregate::CauseOf(series[idle.series]) == v1::GAP_CAUSE_SYNC;
    const DeviceStretch* sync = of_sync ? device.SyncOf(idle) : nullptr;
    // What follows the call counts as the sync's, too (docs/blame.md, rule 7).
    const uint64_t returned_ns =
        sync == nullptr ? idle.end_ns
                        : std::clamp(sync->end_ns, idle.start_ns, idle.end_ns);
    if (idle.start_ns < returned_ns) {
      out->spent.push_back(part.Common(idle.start_ns, returned_ns, cause));
    }
    if (returned_ns == idle.end_ns) continue;
    ranks::Stretch behind = part.Common(returned_ns, idle.end_ns, cause);
    behind.beside_code = true;
    if (sync != told) behind.blocked_ns = sync->end_ns - sync->start_ns;
    told = sync;
    out->spent.push_back(behind);
  }
  const uint32_t computing = causes_.Number(kOfGpu, 0);
  for (const DeviceStretch& one : device.computing()) {
    out->spent.push_back(part.Common(one.start_ns, one.end_ns, computing));
  }
  for (const DeviceStretch& one : device.untraced()) {
    out->spent.push_back(part.Common(one.start_ns, one.end_ns, 0));
  }
  // What encloses another comes first.
  std::stable_sort(out->spent.begin(), out->spent.end(),
                   [](const ranks::Stretch& a, const ranks::Stretch& b) {
                     return a.start_ns != b.start_ns ? a.start_ns < b.start_ns
                                                     : a.end_ns > b.end_ns;
                   });
}

}  // namespace lull::query
