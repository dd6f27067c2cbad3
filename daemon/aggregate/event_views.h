// The arguments of what the collector itself makes; those of all other events are in
// daemon/base/.
#pragma once

#include <cstdint>

#include "daemon/aggregate/event.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"

namespace lull::aggregate {

LULL_EVENT_VIEW(IdleView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, rest_ns, arg1)  // of the whole stretch, what lies elsewhere
};

LULL_EVENT_VIEW(SyncCostView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, needed_ns, arg1)
};

LULL_EVENT_VIEW(CoverageView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, busy_ns, arg0)
  LULL_ARGUMENT(uint64_t, kernel_ns, arg1)
};

LULL_EVENT_VIEW(ForgottenView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, blocks, arg0)
};

}  // namespace lull::aggregate
