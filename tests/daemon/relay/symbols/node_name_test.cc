#include "daemon/relay/symbols/node_name.h"

#include <gtest/gtest.h>

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
