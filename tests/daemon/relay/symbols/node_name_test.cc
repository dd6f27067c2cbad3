#include "daemon/relay/symbols/node_name.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lull::relay {
namespace {

TEST(NodeName, IsThatOfTheClass) {
  EXPECT_EQ(NodeName("N5torch8autograd9generated20ConvolutionBackward0E"),
            "ConvolutionBackward0");
  EXPECT_EQ(NodeName("N5torch8autograd14AccumulateGradE"), "AccumulateGrad");
  EXPECT_EQ(NodeName("N5torch8autograd7CppNodeIN6vision3ops12_GLOBAL__N_1"
                     "16ROIAlignFunctionEEE"),
            "CppNode");
  EXPECT_EQ(NodeName("N4mine4NodeE"), "Node");
  EXPECT_EQ(NodeName("3Own"), "Own");
}

TEST(NodeName, OfAClassThatNoOtherFileSeesIsThatOfTheClass) {
  EXPECT_EQ(NodeName("*N5torch3jit12_GLOBAL__N_127DifferentiableGraphBackwardE"),
            "DifferentiableGraphBackward");
  EXPECT_EQ(NodeName("*"), "*");
}

// 1YIS_S_E is Y<X, X>; each part that follows is a Y of the part before it, twice.
TEST(NodeName, IsNoLongerThanItsTextAllows) {
  std::string type = "1ZIJ1X1YIS_S_E";
  std::string last = "S1_";
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (size_t part = 2; part < 36; ++part) {
    type += "S0_I" + last + last + "E";
    last = std::string("S") + kDigits[part] + "_";
  }
  type += "EE";
  ASSERT_LT(type.size(), 512u);  // as much as the guest gives
  EXPECT_EQ(NodeName(type), type);
}

TEST(NodeName, LeavesWhatItCannotRead) {
  EXPECT_EQ(NodeName(""), "");
  EXPECT_EQ(NodeName("N5torch8auto"), "N5torch8auto");
  EXPECT_EQ(NodeName("\xff"), "\xff");
}

TEST(MakesWorkInForward, IsFalseForViews) {
  for (const char* view :
       {"ViewBackward0", "TBackward0", "SliceBackward0", "SqueezeBackward5",
        "UnsafeViewBackward0", "AsStridedBackward1",
        "SplitBackwardAutogradNestedTensor0", "CopySlices"}) {
    EXPECT_FALSE(MakesWorkInForward(view)) << view;
  }
}

TEST(MakesWorkInForward, IsTrueForAllElse) {
  for (const char* node :
       {"MulBackward0", "SelectBackward0_copy", "SelectBackwardBackward0",
        "TanBackward0", "SliceScatterBackward0", "AccumulateGrad", "PyNode", "CppNode",
        "CopyBackwards", "ToCopyBackward0", ""}) {
    EXPECT_TRUE(MakesWorkInForward(node)) << node;
  }
}

}  // namespace
}  // namespace lull::relay
