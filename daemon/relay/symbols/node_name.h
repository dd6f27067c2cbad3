// The nodes of PyTorch's backward graph by their classes.
#pragma once

#include <string>
#include <string_view>

namespace lull::relay {

// "N5torch8autograd9generated20ConvolutionBackward0E" gives "ConvolutionBackward0"; a
// template gives its own name. What cannot be read is left as it is.
std::string NodeName(const std::string& mangled_type);

// False for nodes that are made without any work: views of a tensor, and what wraps
// another node once its operator is done. The first allocation or launch after them is
// of some other operator, so that their forward line is not known.
bool MakesWorkInForward(std::string_view node);

}  // namespace lull::relay
