// A comparison of two sides as text and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "cli/render/json.h"
#include "daemon/compare/comparison.h"

namespace lull {

// "B is 12.3 % ± 1.1 faster; two syncs gone (torchmetrics/aggregation.py:90, :562)"
std::string DiffHeadline(const compare::Comparison& comparison);

// `top` bounds the rows of each table, 0: all. Sync points that came, went or changed
// are always told in full.
std::string DiffText(const compare::Comparison& comparison, size_t top);
Json DiffJson(const compare::Comparison& comparison, size_t top);

// A number of at least so many digits, and of all before its point: "0.37", "2,160".
std::string Digits(double value, int digits);

// "faster", "no_difference_shown"
const char* VerdictKey(compare::Verdict verdict);

}  // namespace lull
