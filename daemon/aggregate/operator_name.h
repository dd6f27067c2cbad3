// Which operator of PyTorch a native stack is in.
#pragma once

#include <string>
#include <vector>

#include "daemon/aggregate/site.h"

namespace lull::aggregate {

// Of frames that are no code, but operators as a trace of torch.profiler names them.
inline constexpr char kTraceOperatorModule[] = "<operator>";

// Innermost frame first. A node of the backward graph by its own name
// ("SelectBackward0"), else the innermost operator as PyTorch writes it ("aten::add_");
// "" where there is neither. Overloads are not told apart.
std::string OperatorName(const std::vector<const Frame*>& native);

// All of them, each once, the innermost first: what `aten::mm` was called by, down to
// the node ("aten::mm", "aten::matmul"; "aten::mm", "AddmmBackward0"). One that calls
// itself stands where it is innermost.
std::vector<std::string> OperatorsOf(const std::vector<const Frame*>& native);

}  // namespace lull::aggregate
