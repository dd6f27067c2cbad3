// The value that a rule is about.
#pragma once

#include <vector>

#include "daemon/check/judge.h"

namespace lull::check {

// Allowances of `leave` are those that are in force.
Measured MeasureFor(const Rule& rule, const compare::Comparison& comparison,
                    const Leave& leave);

}  // namespace lull::check
