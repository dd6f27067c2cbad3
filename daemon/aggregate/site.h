// Which frame of a stack is the line that a user wants to see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace lull::aggregate {

struct Frame {
  std::string function;
  std::string file;
  int32_t line = 0;
  std::string module;  // native frames: path of the shared object
  friend bool operator==(const Frame&, const Frame&) = default;
};

// Python code that is nobody's training script: the standard library, PyTorch, CuPy,
// Numba and JAX as installed in site-packages or dist-packages, frozen modules and code
// from strings. Other packages count as the user's.
bool IsPythonInfrastructure(std::string_view file);

// Whether it is of an installed package.
bool IsPythonPackage(std::string_view file);

// The node of PyTorch's backward graph that a native frame runs ("SelectBackward0"), or
// "". The backward pass of a GPU has a thread of its own, where no line is the user's:
// the node is what leads back to one.
std::string_view BackwardNode(const Frame& frame);

// A frame's function as a site has it: a node of the backward graph by its own name,
// and what PyTorch does between two of them without its parameters.
std::string SiteFunction(const Frame& frame);

// The innermost frame (stacks start with it) that somebody wrote: it is neither
// infrastructure nor of a library's headers nor made by the compiler. If there is none,
// the innermost; nullptr for an empty stack. A Python stack with frames decides alone,
// the native one counts only without it; there a node of the backward graph comes
// first, and an operator of PyTorch before its allocator.
const Frame* SelectSite(const std::vector<const Frame*>& python,
                        const std::vector<const Frame*>& native);
// For who remembers what IsPythonInfrastructure said of the file of a frame.
const Frame* SelectSite(const std::vector<const Frame*>& python,
                        const std::vector<const Frame*>& native,
                        absl::FunctionRef<bool(const Frame&)> is_infrastructure);

}  // namespace lull::aggregate
