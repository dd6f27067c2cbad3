// Operators of PyTorch by what they made the GPU do, and by the tensors that they
// allocated (docs/operators.md).
#pragma once

#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// A row for each operator and pass, `top` at most. The native stack of a launch or an
// allocation names its operator; those without one are added up as unknown.
void FillOperators(const std::vector<ProcessSums>& processes,
                   const lull::v1::ReportRequest& request, Names& names,
                   lull::v1::Operators* reply);

}  // namespace lull::query
