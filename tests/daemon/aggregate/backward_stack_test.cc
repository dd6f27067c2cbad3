#include "daemon/aggregate/backward_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lull::aggregate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Frame kNode = {"MulBackward0", "", 0, kNodeModule};
const Frame kUnnamed = {"", "", 0, kNodeModule};
const Frame kCaller = {"train", "/job/train.py", 110, ""};
const Frame kMark = {kForwardFunction, "", 0, kForwardModule};
const Frame kMade = {"forward", "/job/model.py", 44, ""};

TEST(BackwardStack, AnOrdinaryStackIsNone) {
  EXPECT_FALSE(AsBackward({}, {}).has_value());
  EXPECT_FALSE(AsBackward({&kCaller}, {}).has_value());
}

TEST(BackwardStack, HasANodeItsCallerAndWhereItWasMade) {
  auto stack = AsBackward({&kNode, &kCaller, &kMark, &kMade}, {});
  ASSERT_TRUE(stack.has_value());
  EXPECT_EQ(stack->node, "MulBackward0");
  EXPECT_THAT(stack->caller, ElementsAre(&kCaller));
  EXPECT_THAT(stack->forward, ElementsAre(&kMade));
}

TEST(BackwardStack, AnyOfTheThreeMayBeUnknown) {
  auto stack = AsBackward({&kUnnamed, &kCaller}, {});
  ASSERT_TRUE(stack.has_value());
  EXPECT_EQ(stack->node, kUnknownNode);
  EXPECT_THAT(stack->caller, ElementsAre(&kCaller));
  EXPECT_THAT(stack->forward, IsEmpty());
  stack = AsBackward({&kNode, &kMark, &kMade}, {});
  ASSERT_TRUE(stack.has_value());
  EXPECT_THAT(stack->caller, IsEmpty());
  EXPECT_THAT(stack->forward, ElementsAre(&kMade));
}

TEST(BackwardStack, ANodeThatNobodyToldIsLookedForAmongTheNativeFrames) {
  const Frame kernel = {"at::native::mul(at::Tensor)", "", 0, "/x/libtorch_cuda.so"};
  const Frame apply = {"torch::autograd::generated::SelectBackward0::apply(int)", "", 0,
                       "/x/libtorch_cpu.so"};
  auto stack = AsBackward({&kUnnamed, &kCaller}, {&kernel, &apply});
  ASSERT_TRUE(stack.has_value());
  EXPECT_EQ(stack->node, "SelectBackward0");
}

}  // namespace
}  // namespace lull::aggregate
