#include "daemon/aggregate/operator_name.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lull::aggregate {
namespace {

// Of a stack with these functions, innermost first.
std::string NameOf(const std::vector<std::string>& functions) {
  std::vector<Frame> frames;
  for (const std::string& function : functions) frames.push_back({function, "", 0, ""});
  std::vector<const Frame*> stack;
  for (const Frame& frame : frames) stack.push_back(&frame);
  return OperatorName(stack);
}

TEST(OperatorName, IsTheInnermostOperatorThatWasCalled) {
  EXPECT_EQ(NameOf({"at::native::add_kernel(at::TensorIteratorBase&)",
                    "at::_ops::add_Tensor::redispatch(c10::DispatchKeySet)",
                    "at::_ops::linear::call(at::Tensor const&)"}),
            "aten::add");
  EXPECT_EQ(NameOf({"main", "start_thread"}), "");
  EXPECT_EQ(NameOf({}), "");
}

TEST(OperatorName, IsTheNodeOfTheBackwardGraphWhereOneRuns) {
  EXPECT_EQ(NameOf({"at::_ops::zeros::call(c10::ArrayRef<c10::SymInt>)",
                    "torch::autograd::generated::SelectBackward0::apply(int&&)"}),
            "SelectBackward0");
  EXPECT_EQ(NameOf({"torch::autograd::AccumulateGrad::apply(int&&)"}),
            "AccumulateGrad");
}

TEST(OperatorName, HasNoOverload) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"add__Tensor", "add_"},
      {"sum_dim_IntList", "sum"},
      {"empty_memory_format", "empty"},
      {"random__from", "random_"},
      {"arange_start", "arange"},
      {"arange_start_step", "arange"},
      {"sort_stable", "sort"},
      {"std_correction", "std"},
      {"__and___Tensor", "__and__"},
      {"__ilshift___Scalar", "__ilshift__"},
      {"_foreach_add__List", "_foreach_add_"},
      {"log_softmax_int", "log_softmax"},
      {"clamp_min", "clamp_min"},
      {"_to_copy", "_to_copy"},
      {"zero_", "zero_"},
      {"div_Tensor_mode", "div"},
      {"to_dtype_layout", "to"},
      {"scatter_src", "scatter"},
      {"_cast_Float", "_cast_Float"},
      {"split_with_sizes", "split_with_sizes"},
      {"take_along_dim", "take_along_dim"},
      {"_softmax_backward_data", "_softmax_backward_data"},
      {"_fused_adamw__tensor_lr", "_fused_adamw_"},
      {"gelu_backward_grad_input", "gelu_backward"},
      {"addmm_out", "addmm"},
  };
  for (const auto& [function, name] : names) {
    EXPECT_EQ(NameOf({"at::_ops::" + function + "::call(at::Tensor&)"}),
              "aten::" + name);
  }
}

TEST(OperatorsOf, HasEachOnceWithTheInnermostFirst) {
  std::vector<Frame> frames;
  for (const char* function :
       {"at::native::gemm(float*)", "at::_ops::mm::redispatch(c10::DispatchKeySet)",
        "at::_ops::mm::call(at::Tensor const&)",
        "at::_ops::matmul::call(at::Tensor const&)",
        "at::_ops::mm::call(at::Tensor const&)",
        "torch::autograd::generated::AddmmBackward0::apply(int&&)",
        "torch::autograd::Engine::evaluate_function()"}) {
    frames.push_back({function, "", 0, ""});
  }
  std::vector<const Frame*> stack;
  for (const Frame& frame : frames) stack.push_back(&frame);
  EXPECT_EQ(OperatorsOf(stack),
            (std::vector<std::string>{"aten::mm", "aten::matmul", "AddmmBackward0"}));
  EXPECT_TRUE(OperatorsOf({}).empty());
}

// As torch.profiler writes them, below <operator>.
TEST(OperatorNames, OfAnImportedTraceAreItsOwn) {
  std::vector<Frame> frames;
  for (const char* function : {"aten::mm", "aten::mm", "AddmmBackward0",
                               "autograd::engine::evaluate_function: AddmmBackward0",
                               "torch::autograd::AccumulateGrad"}) {
    frames.push_back({function, "", 0, kTraceOperatorModule});
  }
  std::vector<const Frame*> stack;
  for (const Frame& frame : frames) stack.push_back(&frame);
  EXPECT_EQ(OperatorsOf(stack),
            (std::vector<std::string>{"aten::mm", "AddmmBackward0", "AccumulateGrad"}));
}

}  // namespace
}  // namespace lull::aggregate
