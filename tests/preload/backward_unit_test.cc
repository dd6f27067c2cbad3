// autograd/callers.h, autograd/forward_table.h, and which versions of PyTorch are
// known.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "preload/autograd/callers.h"
#include "preload/autograd/forward_table.h"
#include "preload/autograd/node.h"
#include "preload/python/torch_version.h"

namespace lull {
namespace {

constexpr uint32_t kGeneration = 7;

class Callers : public ::testing::Test {
 protected:
  BackwardCallers callers_ = {};
  ThreadBackward main_ = {}, other_ = {};
};

TEST_F(Callers, OfNobodyThereIsNone) { EXPECT_EQ(callers_.only(kGeneration), 0u); }

TEST_F(Callers, TheOnlyOneIsKnownWhileItIsInside) {
  callers_.enter(kGeneration, 42, false, &main_);
  EXPECT_EQ(callers_.only(kGeneration), 42u);
  callers_.leave(&main_);
  EXPECT_EQ(callers_.only(kGeneration), 0u);
  EXPECT_EQ(main_.place, 0u);
}

TEST_F(Callers, OfTwoAtOnceNeitherIsTold) {
  callers_.enter(kGeneration, 42, false, &main_);
  callers_.enter(kGeneration, 43, false, &other_);
  EXPECT_EQ(callers_.only(kGeneration), 0u);
  callers_.leave(&main_);
  EXPECT_EQ(callers_.only(kGeneration), 43u);
  callers_.leave(&other_);
  EXPECT_EQ(callers_.only(kGeneration), 0u);
}

// The engine goes on with the outer one's nodes on its own threads.
TEST_F(Callers, OneWithinAnotherIsTheWorkOfTheOuterOne) {
  callers_.enter(kGeneration, 42, false, &main_);
  callers_.enter(kGeneration, 44, false, &main_);
  EXPECT_EQ(callers_.only(kGeneration), 42u);
  callers_.leave(&main_);
  EXPECT_EQ(callers_.only(kGeneration), 42u);
  callers_.leave(&main_);
  EXPECT_EQ(callers_.only(kGeneration), 0u);
}

TEST_F(Callers, StacksOfAnotherSegmentAreNotTold) {
  callers_.enter(0, 0, false, &other_);  // nothing was recorded then
  EXPECT_EQ(callers_.only(kGeneration), 0u);
  callers_.leave(&other_);
  callers_.enter(kGeneration - 1, 42, false, &main_);
  EXPECT_EQ(callers_.only(kGeneration), 0u);
  callers_.enter(kGeneration, 43, false, &other_);  // the first is inside as well
  EXPECT_EQ(callers_.only(kGeneration), 0u);
}

TEST_F(Callers, ThreadsWithoutAPlaceLeaveNobodyAlone) {
  std::vector<ThreadBackward> threads(BackwardCallers::kMost + 1);
  for (ThreadBackward& thread : threads)
    callers_.enter(kGeneration, 50, false, &thread);
  callers_.enter(kGeneration, 50, false, &threads.back());  // within its own call
  callers_.leave(&threads.back());
  for (uint32_t i = 0; i < BackwardCallers::kMost; ++i) callers_.leave(&threads[i]);
  callers_.enter(kGeneration, 51, false, &threads[0]);
  EXPECT_EQ(callers_.only(kGeneration), 0u);
  callers_.leave(&threads.back());
  EXPECT_EQ(callers_.only(kGeneration), 51u);
  callers_.leave(&threads[0]);
}

TEST_F(Callers, ATaskThatIsOlderThanTheCallIsNotItsWork) {
  callers_.enter(kGeneration, 42, false, &main_);
  EXPECT_EQ(callers_.only(kGeneration, 3), 42u);
  callers_.leave(&main_);
  callers_.enter(kGeneration, 43, false, &main_);
  EXPECT_EQ(callers_.only(kGeneration, 3), 0u);  // an exception left it
  EXPECT_EQ(callers_.only(kGeneration, 4), 43u);
  EXPECT_EQ(callers_.only(kGeneration, 4), 43u);
  callers_.leave(&main_);
}

TEST_F(Callers, OfAnAttachNobodyIsToldUntilATaskWasSeen) {
  for (uint32_t generation : {kGeneration, kGeneration + 1}) {
    callers_.enter(generation, 42, true, &main_);
    EXPECT_EQ(callers_.only(generation, 7), 0u);  // it may have been under way
    callers_.leave(&main_);
    callers_.enter(generation, 42, true, &main_);
    EXPECT_EQ(callers_.only(generation, 7), 0u);
    EXPECT_EQ(callers_.only(generation, 8), 42u);
    callers_.leave(&main_);
  }
}

TEST_F(Callers, LeavingWithoutHavingEnteredIsNothing) {
  callers_.enter(kGeneration, 42, false, &main_);
  callers_.leave(&other_);
  EXPECT_EQ(callers_.only(kGeneration), 42u);
  callers_.leave(&main_);
}

class Forward : public ::testing::Test {
 protected:
  std::unique_ptr<ForwardTable> table_ = std::make_unique<ForwardTable>();
};

TEST_F(Forward, FindsWhatWasPut) {
  table_->put(kGeneration, 1, 0, 42);
  table_->put(kGeneration, 1, 1, 43);
  table_->put(kGeneration, 2, 1, 44);
  EXPECT_EQ(table_->find(kGeneration, 1, 0), 42u);
  EXPECT_EQ(table_->find(kGeneration, 1, 1), 43u);
  EXPECT_EQ(table_->find(kGeneration, 2, 1), 44u);
}

TEST_F(Forward, ANumberThatNobodyPutIsNotFound) {
  EXPECT_EQ(table_->find(kGeneration, 1, 0), 0u);
  table_->put(kGeneration, 1, 5, 42);
  EXPECT_EQ(table_->find(kGeneration, 1, 4), 0u);
  EXPECT_EQ(table_->find(kGeneration, 2, 5), 0u);
  EXPECT_EQ(table_->find(kGeneration + 1, 1, 5), 0u);
  EXPECT_EQ(table_->find(kGeneration, 1, UINT64_MAX), 0u);  // AccumulateGrad
}

TEST_F(Forward, WhatWasOverwrittenIsNotKnownAnyMore) {
  for (uint64_t number = 0; number <= ForwardTable::kPlaces; ++number) {
    table_->put(kGeneration, 1, number, static_cast<abi::Ref>(number + 1));
  }
  EXPECT_EQ(table_->find(kGeneration, 1, 0), 0u);
  for (uint64_t number = 1; number <= ForwardTable::kPlaces; ++number) {
    ASSERT_EQ(table_->find(kGeneration, 1, number), number + 1);
  }
}

TEST_F(Forward, AStackThatWasNotTakenMakesRoom) {
  table_->put(kGeneration, 1, 5, 42);
  table_->put(kGeneration, 1, 5 + ForwardTable::kPlaces, 0);
  EXPECT_EQ(table_->find(kGeneration, 1, 5), 0u);
  EXPECT_EQ(table_->find(kGeneration, 1, 5 + ForwardTable::kPlaces), 0u);
}

TEST_F(Forward, WhatDoesNotFitIsLeftOut) {
  const uint64_t huge = uint64_t{1} << 40;
  table_->put(kGeneration, 1024, 5, 42);
  table_->put(kGeneration, 1, huge, 43);
  EXPECT_EQ(table_->find(kGeneration, 1024, 5), 0u);
  EXPECT_EQ(table_->find(kGeneration, 0, 5), 0u);
  EXPECT_EQ(table_->find(kGeneration, 1, huge), 0u);
  EXPECT_EQ(table_->find(kGeneration, 1, 0), 0u);
}

// Readers see a whole word, or nothing.
TEST_F(Forward, IsReadWhileItIsWritten) {
  constexpr uint64_t kNumbers = 200'000;
  std::thread writer([&] {
    for (uint64_t n = 0; n < kNumbers; ++n) {
      table_->put(kGeneration, 3, n, static_cast<abi::Ref>(n % 1000 + 1));
    }
  });
  uint64_t wrong = 0;
  for (uint64_t n = 0; n < kNumbers; ++n) {
    abi::Ref found = table_->find(kGeneration, 3, n);
    wrong += found != 0 && found != n % 1000 + 1;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(TorchVersions, AreReadFromTheirText) {
  auto parsed = [](const char* text) {
    TorchVersion version = parse_torch_version(text);
    return std::pair(version.major, version.minor);
  };
  EXPECT_EQ(parsed("2.9.1+cu128"), std::pair(2, 9));
  EXPECT_EQ(parsed("1.13.0a0"), std::pair(1, 13));
  EXPECT_EQ(parsed("2.15.0"), std::pair(2, 15));
  for (const char* text : {"", "2", "2.", "x.1", "two"}) {
    EXPECT_EQ(parsed(text), std::pair(0, 0)) << text;
  }
}

TEST(NodeLayouts, AreThoseThatWereVerifiedAndNoOthers) {
  for (int minor = 0; minor <= 12; ++minor) {
    const NodeLayout* layout = node_layout({2, minor});
    ASSERT_NE(layout, nullptr) << minor;
    EXPECT_EQ(layout->sequence_number, 24) << minor;
    EXPECT_FALSE(layout->counts_itself) << minor;
  }
  for (int minor = 13; minor <= 15; ++minor) {
    const NodeLayout* layout = node_layout({2, minor});
    ASSERT_NE(layout, nullptr) << minor;
    EXPECT_EQ(layout->sequence_number, 16) << minor;
    EXPECT_TRUE(layout->counts_itself) << minor;
  }
  EXPECT_EQ(node_layout({1, 13}), nullptr);
  EXPECT_EQ(node_layout({2, 16}), nullptr);
  EXPECT_EQ(node_layout({3, 0}), nullptr);
  EXPECT_EQ(node_layout({0, 0}), nullptr);
}

}  // namespace
}  // namespace lull
