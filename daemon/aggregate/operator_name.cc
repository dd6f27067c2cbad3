#include "daemon/aggregate/operator_name.h"

#include <cstddef>
#include <string_view>

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

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() > suffix.size() &&
         text.substr(text.size() - suffix.size()) == suffix;
}

// The overload is joined to the name with one more '_': add__Tensor is add_.Tensor,
// random__from is random_.from, empty_memory_format is empty.memory_format. Most begin
// with a capital letter.
std::string_view WithoutOverload(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    size_t at = name.rfind('_');
    bool capital = at != std::string_view::npos && at > 0 && at + 1 < name.size() &&
                   name[at + 1] >= 'A' && name[at + 1] <= 'Z';
    if (capital) {
      name = name.substr(0, at);
      again = true;
    }
  }
  size_t in_place = name.find("__", 2);  // not the __ of __and__
  if (in_place != std::string_view::npos && in_place + 2 < name.size()) {
    return name.substr(0, in_place + 1);
  }
  for (std::string_view overload :
       {"_memory_format", "_int", "_out", "_dim", "_start", "_start_step", "_stable",
        "_correction", "_vec", "_self"}) {
    if (EndsWith(name, overload)) return name.substr(0, name.size() - overload.size());
  }
  return name;
}

}  // namespace

std::string OperatorName(const std::vector<const Frame*>& native) {
  std::string_view innermost;
  for (const Frame* frame : native) {
    std::string_view node = BackwardNode(frame->function);
    if (!node.empty()) return std::string(node);
    if (innermost.empty()) innermost = Between(frame->function, "at::_ops::");
  }
  if (innermost.empty()) return "";
  return "aten::" + std::string(WithoutOverload(innermost));
}

}  // namespace lull::aggregate
