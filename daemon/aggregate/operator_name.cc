#include "daemon/aggregate/operator_name.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace lull::aggregate {
namespace {

// What stands behind `prefix` up to the next "::"; "" where there is none.
std::string_view Between(std::string_view name, std::string_view prefix) {
  size_t at = name.find(prefix);
  if (at == std::string_view::npos) return {};
  name.remove_prefix(at + prefix.size());
  size_t end = name.find("::");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

// "torch::autograd::generated::SelectBackward0::apply(...)" and the nodes that are
// written by hand, in torch::autograd itself.
std::string_view BackwardNode(std::string_view name) {
  if (name.find("::apply(") == std::string_view::npos) return {};
  std::string_view node = Between(name, "torch::autograd::generated::");
  if (!node.empty()) return node;
  node = Between(name, "torch::autograd::");
  bool is_node = node == "AccumulateGrad" || node == "CopySlices" ||
                 node.find("Backward") != std::string_view::npos;
  return is_node ? node : std::string_view();
}

bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

// Names of operators that end as an overload does.
constexpr std::string_view kWholeNames[] = {
    "unique_dim", "take_along_dim",   "norm_except_dim",        "sparse_dim",
    "dense_dim",  "split_with_sizes", "unsafe_split_with_sizes"};

// Overloads that do not begin with a capital letter: those that training code uses.
constexpr std::string_view kOverloads[] = {
    "_start_step", "_memory_format", "_dtype_layout", "_value_reduce", "_grad_input",
    "_correction", "_low_dtype",     "_names_dim",    "_dimname",      "_stable",
    "_device",     "_dtype",         "_other",        "_start",        "_value",
    "_sizes",      "_dims",          "_self",         "_dim",          "_int",
    "_low",        "_out",           "_src",          "_two",          "_vec"};

// The overload is joined to the name with one more '_': add__Tensor is add_.Tensor,
// div_Tensor_mode is div.Tensor_mode, random__from is random_.from, empty_memory_format
// is empty.memory_format. Most begin with a capital letter, which no name has but
// _cast_Float and the like.
std::string_view WithoutOverload(std::string_view name) {
  for (size_t at = 1; at + 1 < name.size() && name.substr(0, 6) != "_cast_"; ++at) {
    if (name[at] != '_' || !IsCapital(name[at + 1])) continue;
    name = name.substr(0, at);
    break;
  }
  size_t in_place = name.find("__", 2);  // not the __ of __and__
  if (in_place != std::string_view::npos && in_place + 2 < name.size()) {
    return name.substr(0, in_place + 1);
  }
  for (std::string_view whole : kWholeNames) {
    if (name == whole) return name;
  }
  for (std::string_view overload : kOverloads) {
    if (name != overload && name.ends_with(overload))
      return name.substr(0, name.size() - overload.size());
  }
  return name;
}

std::string AtenName(std::string_view function) {
  std::string_view name = Between(function, "at::_ops::");
  return name.empty() ? "" : "aten::" + std::string(WithoutOverload(name));
}

// An imported trace names operators and nodes as torch.profiler does. What the engine
// puts around a node is no operator.
std::string NameInTrace(std::string_view name) {
  if (name.starts_with("autograd::engine::")) return "";
  constexpr std::string_view kNodes = "torch::autograd::";
  if (name.starts_with(kNodes)) name.remove_prefix(kNodes.size());
  return std::string(name);
}

// What a frame is the call of; "" of most.
std::string NameIn(const Frame& frame) {
  if (frame.module == kTraceOperatorModule) return NameInTrace(frame.function);
  const std::string_view node = BackwardNode(frame.function);
  return node.empty() ? AtenName(frame.function) : std::string(node);
}

}  // namespace

std::string OperatorName(const std::vector<const Frame*>& native) {
  std::string innermost;
  for (const Frame* frame : native) {
    std::string_view node = BackwardNode(frame->function);
    if (!node.empty()) return std::string(node);
    if (innermost.empty()) innermost = AtenName(frame->function);
  }
  return innermost;
}

std::vector<std::string> OperatorsOf(const std::vector<const Frame*>& native) {
  std::vector<std::string> operators;
  for (const Frame* frame : native) {
    std::string name = NameIn(*frame);
    bool is_new = !name.empty() && std::find(operators.begin(), operators.end(),
                                             name) == operators.end();
    if (is_new) operators.push_back(std::move(name));
  }
  return operators;
}

}  // namespace lull::aggregate
