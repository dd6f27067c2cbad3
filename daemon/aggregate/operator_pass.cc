#include "daemon/aggregate/operator_pass.h"

#include <cstddef>
#include <string_view>

#include "daemon/aggregate/backward_stack.h"
#include "daemon/aggregate/operator_name.h"
#include "daemon/base/text.h"

namespace lull::aggregate {
namespace {

// torch.profiler cuts off what sys.path begins with.
bool IsBelow(std::string_view file, std::string_view path) {
  return file.starts_with(path.substr(1)) || Contains(file, path);
}

bool IsOfOptim(const Frame& frame) { return IsBelow(frame.file, "/torch/optim/"); }

// ".../site-packages/apex" of ".../site-packages/apex/optimizers/fused_adam.py"; the
// file itself where it is of no package.
std::string_view PackageOf(std::string_view file) {
  for (std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    size_t at = file.find(folder);
    if (at == std::string_view::npos) continue;
    return file.substr(0, file.find('/', at + folder.size()));
  }
  return file;
}

// Optimizer.step of any class goes through a wrapper in torch/optim/optimizer.py. What
// that calls is the step: all between it and the launch is the optimizer's own, or
// PyTorch's, unless the step has called its closure, which is the program's.
bool IsOfOptimizer(const std::vector<const Frame*>& python) {
  size_t outer = 0;
  while (outer < python.size() && !IsOfOptim(*python[outer])) ++outer;
  if (outer == python.size()) return false;
  std::string_view package;  // none: a step of torch.optim, which calls closures alone
  bool is_wrapper = IsBelow(python[outer]->file, "/torch/optim/optimizer.py");
  if (outer > 0 && is_wrapper) package = PackageOf(python[outer - 1]->file);
  for (size_t i = 0; i < outer; ++i) {
    const Frame& frame = *python[i];
    if (Contains(frame.function, "closure")) return false;
    if (IsPythonInfrastructure(frame.file)) continue;
    if (PackageOf(frame.file) != package) return false;
  }
  return true;
}

bool IsOfEngine(const Frame& frame) {
  std::string_view name = frame.function;
  if (frame.module == kTraceOperatorModule) {
    return name.starts_with("autograd::engine::evaluate_function: ");
  }
  return name.substr(0, 25) == "torch::autograd::Engine::" ||
         !BackwardNode(frame).empty();
}

}  // namespace

OperatorPass PassOf(const std::vector<const Frame*>& python,
                    const std::vector<const Frame*>& native) {
  if (AsBackward(python, native)) return OperatorPass::kBackward;
  if (IsOfOptimizer(python)) return OperatorPass::kOptimizer;
  for (const Frame* frame : native) {
    if (IsOfEngine(*frame)) return OperatorPass::kBackward;
  }
  if (!python.empty()) return OperatorPass::kForward;
  return OperatorPass::kUnknown;
}

}  // namespace lull::aggregate
