#include "daemon/aggregate/backward_stack.h"

#include <cstddef>

namespace lull::aggregate {
namespace {

std::string NodeAmong(const std::vector<const Frame*>& native) {
  for (const Frame* frame : native) {
    std::string_view node = BackwardNode(*frame);
    if (!node.empty()) return std::string(node);
  }
  return kUnknownNode;
}

}  // namespace

std::optional<BackwardStack> AsBackward(const std::vector<const Frame*>& python,
                                        const std::vector<const Frame*>& native) {
  if (python.empty() || python.front()->module != kNodeModule) return std::nullopt;
  BackwardStack stack;
  stack.node = python.front()->function;
  if (stack.node.empty()) stack.node = NodeAmong(native);
  std::vector<const Frame*>* frames = &stack.caller;
  for (size_t i = 1; i < python.size(); ++i) {
    if (python[i]->module == kForwardModule) {
      frames = &stack.forward;
    } else {
      frames->push_back(python[i]);
    }
  }
  return stack;
}

}  // namespace lull::aggregate
