#include <gtest/gtest.h>

#include <string>

#include "preload/scopes/scope_name.h"

namespace lull {
namespace {

std::string NameOf(const char* name) {
  ScopeName judged = judge_scope_name(name);
  return {judged.text, judged.size};
}

TEST(ScopeName, IsKeptAsItIs) {
  for (const char* name : {"forward", "layer_3", "block12", "layer1", "a b c", "7",
                           "Optimizer.step#SGD.step", "\xc3\xa9t\xc3\xa9"}) {
    EXPECT_EQ(NameOf(name), name);
  }
}

TEST(ScopeName, LosesANumberThatOnlyCounts) {
  EXPECT_EQ(NameOf("step 17"), "step");
  EXPECT_EQ(NameOf("ProfilerStep#17"), "ProfilerStep");
  EXPECT_EQ(NameOf("aten::add, seq = 4"), "aten::add, seq");
  EXPECT_EQ(NameOf("step_100"), "step_");
  EXPECT_EQ(NameOf("epoch 3 step 17"), "epoch 3 step");
}

TEST(ScopeName, IsNeverEmpty) {
  EXPECT_EQ(NameOf(""), "(unnamed)");
  EXPECT_EQ(NameOf(nullptr), "(unnamed)");
  EXPECT_EQ(NameOf("1234"), "(unnamed)");
  EXPECT_EQ(NameOf(" 1"), "(unnamed)");
}

TEST(ScopeName, IsCutWhereItIsTooLong) {
  std::string text(kMostScopeName - 1, 'x');
  EXPECT_EQ(NameOf((text + "y").c_str()), text + "y");
  EXPECT_EQ(NameOf((text + "yz").c_str()), text + "y");
  // What follows may be no number.
  EXPECT_EQ(NameOf((text.substr(3) + "123456789").c_str()), text.substr(3) + "1234");
}

TEST(ScopeName, KnowsTheLoaders) {
  for (const char* name :
       {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"}) {
    EXPECT_TRUE(judge_scope_name(name).of_loader) << name;
  }
  for (const char* name :
       {"enumerate(DataPipe)#Mapper", "enumerate(DataLoader)#X.reset", ".__next__",
        "my enumerate(DataLoader)#X.__next__", "", "enumerate(DataLoader)#"}) {
    EXPECT_FALSE(judge_scope_name(name).of_loader) << name;
  }
}

}  // namespace
}  // namespace lull
