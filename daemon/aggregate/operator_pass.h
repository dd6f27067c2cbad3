// Which part of a training step an operator worked for, by the stacks that it was
// called from.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/aggregate/site.h"

namespace lull::aggregate {

// Values equal those of lull.v1.OperatorPass.
enum class OperatorPass : uint8_t {
  kUnknown = 0,    // no stack says so
  kForward = 1,    // neither of the next two: the model, metrics, copies of data
  kBackward = 2,   // below a node of the backward graph, or on its engine
  kOptimizer = 3,  // in an optimizer's step, but not in a closure that it was given
};

// Innermost frames first. Optimizers are those of torch.optim and classes derived from
// its Optimizer.
OperatorPass PassOf(const std::vector<const Frame*>& python,
                    const std::vector<const Frame*>& native);

}  // namespace lull::aggregate
