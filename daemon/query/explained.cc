#include <array>

#include "daemon/advice/verdict.h"
#include "daemon/query/doing.h"
#include "daemon/query/gpu.h"

namespace lull::query {
namespace {

bool HasLine(uint32_t site, Names& names) {
  v1::Site filled;
  names.FillSite(site, &filled);
  // For backward work whose caller nobody knows: the line that made the node.
  return filled.line() > 0 || filled.forward_site().line() > 0;
}

bool IsTheCodeItself(uint8_t cause) {
  return cause == v1::GAP_CAUSE_HOST_CODE || cause == v1::GAP_CAUSE_LAUNCH_BOUND;
}

// For the other causes a stretch is explained as a whole, or not at all.
bool IsExplained(const Series& idle, Names& names) {
  switch (aggregate::CauseOf(idle)) {
    case v1::GAP_CAUSE_UNKNOWN:
      return false;
    case v1::GAP_CAUSE_RUN_QUEUE:
      return true;
    case v1::GAP_CAUSE_DEPENDENCY:
    case v1::GAP_CAUSE_LAUNCH_LATENCY:
      return HasLine(idle.after_line, names);
    default:
      return HasLine(idle.line_site, names);
  }
}

uint64_t ExplainedOf(const ProcessSums& sums, Names& names, Stacks& stacks) {
  std::array<uint64_t, kCauses> code_ns = {};
  std::array<Doing, kCauses> doing;
  uint64_t explained = 0;
  sums.ForEach([&](const Series& series, const Cell& cell) {
    if (series.type == EventType::kIdle && cell.total_ns > 0 &&
        aggregate::CauseOf(series) < kCauses) {
      if (IsTheCodeItself(aggregate::CauseOf(series))) {
        code_ns[aggregate::CauseOf(series)] += cell.total_ns;
      } else if (IsExplained(series, names)) {
        explained += cell.total_ns;
      }
    } else if (series.type == EventType::kGapSample && cell.count > 0 &&
               aggregate::GapOf(series) < sums.series.size()) {
      const Series& idle = sums.series[aggregate::GapOf(series)];
      if (aggregate::CauseOf(idle) < kCauses)
        doing[aggregate::CauseOf(idle)].Add(idle, series, cell, names);
    }
  });
  for (size_t cause = 0; cause < kCauses; ++cause) {
    if (code_ns[cause] == 0 || doing[cause].empty()) continue;
    explained += static_cast<uint64_t>(static_cast<double>(code_ns[cause]) *
                                       doing[cause].WithLine(stacks));
  }
  return explained;
}

}  // namespace

uint64_t ExplainedNs(View& view) {
  uint64_t explained = 0;
  for (const ProcessSums& sums : view.processes) {
    explained += ExplainedOf(sums, *view.names, *view.stacks);
  }
  return explained;
}

}  // namespace lull::query
