// What an answer on steps says about itself.
#pragma once

#include <algorithm>

#include "query.pb.h"

namespace lull {

// Were there steps wholly in traced time? Only then are the parts that the device
// decides real, those of the median included.
inline bool AnyStepTraced(const v1::Steps& reply) {
  return reply.median().traced() ||
         std::any_of(reply.steps().begin(), reply.steps().end(),
                     [](const v1::StepRow& step) { return step.traced(); });
}

}  // namespace lull
