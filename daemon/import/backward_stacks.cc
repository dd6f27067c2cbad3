#include "daemon/import/backward_stacks.h"

#include <string>

#include "daemon/base/backward_frames.h"

namespace lull::imports {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

}  // namespace

bool IsBackward(const Record& op, std::string_view name) {
  return (op.bytes != 0 && op.extra > 0) || name.starts_with(kEvaluate);
}

void BackwardStacks::AddCaller(uint32_t stack, uint64_t start_ns, uint64_t end_ns) {
  if (end_ns <= caller_to_ns_) return;  // within the outer one
  caller_ = stack;
  caller_from_ns_ = start_ns;
  caller_to_ns_ = end_ns;
}

uint32_t BackwardStacks::NodeOf(uint32_t name) {
  auto [it, fresh] = nodes_.try_emplace(name);
  if (!fresh) return it->second;
  std::string_view node = strings_[name];
  for (std::string_view prefix : {kEvaluate, std::string_view("torch::autograd::")}) {
    if (node.starts_with(prefix)) node.remove_prefix(prefix.size());
  }
  return it->second = strings_.Intern(std::string(node));
}

uint32_t BackwardStacks::Of(const Record& op) {
  const uint32_t node = NodeOf(op.name);
  const bool called = op.start_ns >= caller_from_ns_ && op.start_ns < caller_to_ns_;
  const auto made = op.bytes != 0 ? forward_.find(op.bytes) : forward_.end();
  const uint32_t forward = made != forward_.end() ? made->second : 0;
  const uint32_t caller = called ? caller_ : 0;
  auto [it, fresh] = known_.try_emplace({node, forward, caller});
  if (!fresh) return it->second;
  uint32_t stack = 0;
  if (forward != 0) {
    stack = python_.Push(forward, {strings_.Intern(kForwardFunction),
                                   strings_.Intern(kForwardModule), 0});
  }
  stack = python_.Append(stack, caller);
  return it->second = python_.Push(stack, {node, strings_.Intern(kNodeModule), 0});
}

}  // namespace lull::imports
