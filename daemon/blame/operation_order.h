// Total orders, so that the order of arrival leaves no trace.
#pragma once

#include <tuple>

#include "daemon/base/settled.h"
#include "daemon/blame/blame.h"

namespace lull::blame {

struct OperationOrder {
  bool operator()(const Operation& a, const Operation& b) const {
    return std::tie(a.start_ns, a.end_ns, a.correlation, a.device, a.context, a.stream,
                    a.series, a.kind) < std::tie(b.start_ns, b.end_ns, b.correlation,
                                                 b.device, b.context, b.stream,
                                                 b.series, b.kind);
  }
};

// Syncs and run delays are dealt with when they are over.
struct SyncOrder {
  bool operator()(const HostEvent& a, const HostEvent& b) const {
    return std::tie(a.end_ns, a.start_ns, a.tid, a.series) <
           std::tie(b.end_ns, b.start_ns, b.tid, b.series);
  }
};

struct RunDelayOrder {
  bool operator()(const RunDelay& a, const RunDelay& b) const {
    return std::tie(a.end_ns, a.start_ns, a.tid, a.delay_ns) <
           std::tie(b.end_ns, b.start_ns, b.tid, b.delay_ns);
  }
};
using RunDelays = Settled<RunDelay, RunDelayOrder>;

}  // namespace lull::blame
