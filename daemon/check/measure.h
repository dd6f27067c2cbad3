// The value that a rule is about.
#pragma once

#include <vector>

#include "daemon/check/judge.h"

namespace lull::check {

// `allowances` are those that are in force.
Measured MeasureFor(const Rule& rule, const compare::Comparison& comparison,
                    const std::vector<Allowance>& allowances);

}  // namespace lull::check
