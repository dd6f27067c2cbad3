#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "preload/hooks/communicators.h"

namespace lull {
namespace {

const void* HandleOf(uintptr_t number) {
  return reinterpret_cast<const void*>(number * 4096);
}

class CommunicatorsTest : public testing::Test {
 protected:
  // All zero, as the one of the shim is.
  std::unique_ptr<Communicators> all_{new Communicators()};
};

TEST_F(CommunicatorsTest, AreFoundByTheirHandles) {
  all_->Add(HandleOf(1), 11, 8);
  all_->Add(HandleOf(2), 22, 2);
  ASSERT_NE(all_->Find(HandleOf(1)), nullptr);
  EXPECT_EQ(all_->Find(HandleOf(1))->id, 11u);
  EXPECT_EQ(all_->Find(HandleOf(1))->members, 8u);
  EXPECT_EQ(all_->Find(HandleOf(2))->id, 22u);
  EXPECT_EQ(all_->Find(HandleOf(3)), nullptr);
  EXPECT_EQ(all_->Find(nullptr), nullptr);
}

TEST_F(CommunicatorsTest, AHandleThatComesAgainIsAnotherOne) {
  all_->Add(HandleOf(1), 11, 8);
  all_->Find(HandleOf(1))->collectives = 5;
  all_->Add(HandleOf(1), 12, 4);
  EXPECT_EQ(all_->Find(HandleOf(1))->id, 12u);
  EXPECT_EQ(all_->Find(HandleOf(1))->collectives, 0u);
  all_->Remove(HandleOf(1));
  EXPECT_EQ(all_->Find(HandleOf(1)), nullptr);
}

TEST_F(CommunicatorsTest, BeyondTheirNumberTheyAreNotKnown) {
  for (uintptr_t i = 1; i <= 2 * Communicators::kMost; ++i) {
    all_->Add(HandleOf(i), i, 2);
  }
  uint32_t known = 0;
  for (uintptr_t i = 1; i <= 2 * Communicators::kMost; ++i) {
    const Communicator* one = all_->Find(HandleOf(i));
    if (one == nullptr) continue;
    ++known;
    EXPECT_EQ(one->id, i);
  }
  EXPECT_LE(known, Communicators::kMost);
  EXPECT_GT(known, Communicators::kMost * 9 / 10);
}

// A program that makes and destroys them all day long.
TEST_F(CommunicatorsTest, TheirPlacesAreUsedAgain) {
  for (uintptr_t i = 1; i <= 100'000; ++i) {
    all_->Add(HandleOf(i), i, 2);
    ASSERT_NE(all_->Find(HandleOf(i)), nullptr) << i;
    all_->Remove(HandleOf(i));
  }
}

// The group's chain goes through the place of one that was destroyed in it.
TEST_F(CommunicatorsTest, APlaceInAnOpenGroupIsNotTaken) {
  all_->Add(HandleOf(1), 11, 8);
  Communicator* first = all_->Find(HandleOf(1));
  first->in_group = true;
  all_->Remove(HandleOf(1));
  all_->Add(HandleOf(1), 12, 8);
  ASSERT_NE(all_->Find(HandleOf(1)), nullptr);
  EXPECT_NE(all_->Find(HandleOf(1)), first);
}

TEST_F(CommunicatorsTest, IdsAreEqualWhereWhatTheyAreMadeOfIs) {
  UniqueId one{}, other{};
  other.words[15] = 1;
  EXPECT_EQ(communicator_id(&one, 1), communicator_id(&one, 1));
  EXPECT_NE(communicator_id(&one, 1), communicator_id(&other, 1));
  std::set<uint64_t> ids;
  for (uint64_t parent = 1; parent <= 10; ++parent) {
    for (uint32_t split = 0; split < 10; ++split) {
      for (int color = 0; color < 10; ++color) {
        ids.insert(split_id(parent, split, color));
      }
    }
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_FALSE(ids.contains(0));
}

TEST_F(CommunicatorsTest, BytesOfTypes) {
  EXPECT_EQ(bytes_of_type(7), 4u);  // ncclFloat32
  EXPECT_EQ(bytes_of_type(9), 2u);  // ncclBfloat16
  EXPECT_EQ(bytes_of_type(-1), 0u);
  EXPECT_EQ(bytes_of_type(99), 0u);
}

}  // namespace
}  // namespace lull
