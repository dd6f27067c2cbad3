// What keeps a rule from being judged: nothing passes by being absent.
#pragma once

#include <string>

#include "daemon/check/judge.h"

namespace lull::check {

// Why nothing may be said of what a metric is made of; "" if it may.
std::string WhyNotMeasured(const Rule& rule, const compare::Comparison& comparison,
                           const Leave& leave);

}  // namespace lull::check
