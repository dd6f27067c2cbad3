// The arguments of what ran on a device, of the calls that submitted it, and of tracing
// (event_view.h).
#pragma once

#include <cstdint>

#include "daemon/base/event_view.h"
#include "daemon/base/ids.h"

namespace lull {

// What of a copy's shape tells copies apart: lull.v1.GpuCopyKind and GpuMemoryKind.
struct CopyShape {
  template <typename Kind, typename Memory>
  static constexpr CopyShape Of(Kind kind, Memory source, Memory destination) {
    return {static_cast<uint32_t>(kind) | static_cast<uint32_t>(source) << 8 |
            static_cast<uint32_t>(destination) << 16};
  }
  uint32_t packed;
  constexpr uint32_t kind() const { return packed & 0xff; }
  constexpr uint32_t source() const { return packed >> 8 & 0xff; }
  constexpr uint32_t destination() const { return packed >> 16 & 0xff; }
};

// Of any operation. arg0 and arg1 of one that is no copy or memset are its graph's.
LULL_EVENT_VIEW(OperationView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, graph, arg0)
  LULL_ARGUMENT(uint64_t, graph_node, arg1)
  LULL_ARGUMENT(CorrelationId, correlation, arg2)
};

// Of kGpuCopy and kGpuMemset.
LULL_EVENT_VIEW(GpuCopyView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, bytes, arg0)
  CopyShape shape() const { return {static_cast<uint32_t>(event.arg1 & 0xffffff)}; }
  const auto& set_shape(CopyShape shape) const {  // of no graph
    event.arg1 = shape.packed;
    return *this;
  }
  LULL_ARGUMENT(CorrelationId, correlation, arg2)
};

LULL_EVENT_VIEW(ApiCallView) {
  Event& event;
  LULL_ARGUMENT(ThreadId, caller, arg0)
  LULL_ARGUMENT(CorrelationId, correlation, arg2)
};

LULL_EVENT_VIEW(StreamWaitView) {
  Event& event;
  LULL_ARGUMENT(ThreadId, caller, arg0)
  LULL_ARGUMENT(uint64_t, awaited, arg1)  // CUPTI's id of the event
  LULL_ARGUMENT(CorrelationId, correlation, arg2)
};

LULL_EVENT_VIEW(TracingView) {
  Event& event;
  LULL_WORD(state, arg0)   // lull.v1.TracingState
  LULL_WORD(reason, arg1)  // lull.v1.TracingReason
  LULL_ARGUMENT(uint32_t, window, arg2)
};

LULL_EVENT_VIEW(LostView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, records, arg0)
};

}  // namespace lull
