// The arguments of events that are words of the proto, which daemon/aggregate does not
// see (its event_views.h has the others). Values of a newer relay are passed on as they
// are.
#pragma once

#include "daemon/aggregate/event.h"
#include "events.pb.h"

namespace lull::collector {

struct TracingView {
  const aggregate::Event& event;
  v1::TracingState state() const { return static_cast<v1::TracingState>(event.arg0); }
  v1::TracingReason reason() const {
    return static_cast<v1::TracingReason>(event.arg1);
  }
};

inline v1::StepSource SourceOf(const aggregate::Event& step) {
  return static_cast<v1::StepSource>(step.arg2);
}

}  // namespace lull::collector
