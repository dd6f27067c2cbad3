#include "daemon/aggregate/operator_pass.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/aggregate/operator_name.h"
#include "daemon/base/backward_frames.h"

namespace lull::aggregate {
namespace {

constexpr char kSite[] = "/venv/lib/python3.11/site-packages/";

using Calls = std::vector<std::pair<std::string, std::string>>;  // function, file

// Files without a '/' in front lie in site-packages.
OperatorPass Judge(const Calls& python, const std::vector<std::string>& native = {}) {
  std::vector<Frame> frames;
  for (const auto& [function, file] : python) {
    frames.push_back({function, file[0] == '/' ? file : kSite + file, 1, ""});
  }
  for (const std::string& function : native) {
    frames.push_back({function, "", 0, "/libtorch_cpu.so"});
  }
  std::vector<const Frame*> first, second;
  for (size_t i = 0; i < frames.size(); ++i) {
    (i < python.size() ? first : second).push_back(&frames[i]);
  }
  return PassOf(first, second);
}

TEST(OperatorPass, IsForwardWhereNothingElseIsKnown) {
  EXPECT_EQ(Judge({{"Linear.forward", "torch/nn/modules/linear.py"},
                   {"train", "/home/u/train.py"}}),
            OperatorPass::kForward);
  EXPECT_EQ(Judge({}, {"at::_ops::mm::call()"}), OperatorPass::kUnknown);
  EXPECT_EQ(Judge({}), OperatorPass::kUnknown);
}

TEST(OperatorPass, IsBackwardOnTheEngine) {
  EXPECT_EQ(Judge({}, {"torch::autograd::generated::AddmmBackward0::apply(int&&)"}),
            OperatorPass::kBackward);
  // A Function of the program has frames; so has what checkpoint computes again.
  EXPECT_EQ(Judge({{"Scale.backward", "/home/u/train.py"}},
                  {"at::_ops::mul::call()", "torch::autograd::Engine::thread_main()"}),
            OperatorPass::kBackward);
  Frame node = {"MulBackward0", "", 0, kNodeModule};
  EXPECT_EQ(PassOf({&node}, {}), OperatorPass::kBackward);
}

TEST(OperatorPass, IsTheOptimizersInItsStep) {
  const Calls step = {{"AdamW.step", "torch/optim/adamw.py"},
                      {"wrapper", "torch/optim/optimizer.py"},
                      {"train", "/home/u/train.py"}};
  Calls inner = step;
  inner.insert(inner.begin(), {"_wrapped", "torch/_tensor.py"});
  EXPECT_EQ(Judge(step), OperatorPass::kOptimizer);
  EXPECT_EQ(Judge(inner), OperatorPass::kOptimizer);
  // In a hook of the backward pass, too.
  EXPECT_EQ(Judge(step, {"torch::autograd::Engine::thread_main()"}),
            OperatorPass::kOptimizer);
}

TEST(OperatorPass, IsTheOptimizersInTheStepOfAnotherPackage) {
  EXPECT_EQ(Judge({{"multi_tensor", "apex/multi_tensor_apply.py"},
                   {"FusedAdam.step", "apex/optimizers/fused_adam.py"},
                   {"wrapper", "torch/optim/optimizer.py"},
                   {"train", "/home/u/train.py"}}),
            OperatorPass::kOptimizer);
}

TEST(OperatorPass, IsNotTheOptimizersInItsClosure) {
  EXPECT_EQ(Judge({{"Model.forward", "/home/u/model.py"},
                   {"Closure.closure", "lightning/loops/automatic.py"},
                   {"Closure.__call__", "lightning/loops/automatic.py"},
                   {"AdamW.step", "torch/optim/adamw.py"},
                   {"wrapper", "torch/optim/optimizer.py"}}),
            OperatorPass::kForward);
  // Of an optimizer in the same file as the closure that it calls.
  EXPECT_EQ(Judge({{"train.<locals>.closure", "/home/u/train.py"},
                   {"Mine.step", "/home/u/train.py"},
                   {"wrapper", "torch/optim/optimizer.py"}}),
            OperatorPass::kForward);
}

TEST(OperatorPass, OfAnImportedTrace) {
  Frame engine = {"autograd::engine::evaluate_function: MmBackward0", "", 0,
                  kTraceOperatorModule};
  Frame other = {"aten::mm", "", 0, kTraceOperatorModule};
  EXPECT_EQ(PassOf({}, {&other, &engine}), OperatorPass::kBackward);
  EXPECT_EQ(PassOf({}, {&other}), OperatorPass::kUnknown);
  // Without what sys.path begins with.
  Frame step = {"step", "torch/optim/adam.py", 135, ""};
  Frame wrapper = {"wrapper", "torch/optim/optimizer.py", 360, ""};
  Frame user = {"train", "train.py", 10, ""};
  EXPECT_EQ(PassOf({&step, &wrapper, &user}, {&other}), OperatorPass::kOptimizer);
  EXPECT_EQ(PassOf({&user}, {&other}), OperatorPass::kForward);
}

}  // namespace
}  // namespace lull::aggregate
