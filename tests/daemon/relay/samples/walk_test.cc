#include "daemon/relay/samples/walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lull::relay {
namespace {

using ::testing::ElementsAre;

// Frames by their addresses, innermost first; each runs the code of its number.
StackWalk Of(const std::vector<uint64_t>& frames) {
  StackWalk walk;
  walk.alive = walk.complete = true;
  for (uint64_t frame : frames) walk.frames.push_back({frame, frame * 10, 2, 0});
  return walk;
}

std::vector<uint64_t> Addresses(const StackWalk& walk) {
  std::vector<uint64_t> addresses;
  for (const SeenFrame& frame : walk.frames) addresses.push_back(frame.address);
  return addresses;
}

TEST(Agree, KeepsAllOfEqualStacks) {
  StackWalk walk = Of({3, 2, 1});
  StackWalk other = Of({3, 2, 1});
  other.frames[0].lasti = 8;  // the innermost one goes on meanwhile
  EXPECT_TRUE(Agree(other, &walk));
  EXPECT_THAT(Addresses(walk), ElementsAre(3, 2, 1));
}

TEST(Agree, KeepsTheCallersThatBothHave) {
  StackWalk walk = Of({4, 2, 1});
  EXPECT_FALSE(Agree(Of({5, 3, 2, 1}), &walk));
  EXPECT_THAT(Addresses(walk), ElementsAre(2, 1));
}

TEST(Agree, TakesACallerAtAnotherCallForAnotherOne) {
  StackWalk walk = Of({3, 2, 1});
  StackWalk other = Of({3, 2, 1});
  other.frames[1].lasti = 8;
  EXPECT_FALSE(Agree(other, &walk));
  EXPECT_THAT(Addresses(walk), ElementsAre(1));
}

TEST(Agree, AlignsStacksOfWhichOuterFramesAreLeftOut) {
  StackWalk walk = Of({5, 4, 3, 2});
  walk.truncated = true;
  StackWalk other = Of({6, 5, 4, 3});
  other.truncated = true;
  EXPECT_FALSE(Agree(other, &walk));
  EXPECT_TRUE(walk.truncated);
  EXPECT_THAT(Addresses(walk), ElementsAre(5, 4, 3));
}

TEST(Agree, LeavesNothingOfDifferentStacks) {
  StackWalk walk = Of({2, 1});
  EXPECT_FALSE(Agree(Of({4, 3}), &walk));
  EXPECT_TRUE(walk.frames.empty());
}

TEST(MarkTorn, MarksAStackThatEndsAtAFrameWithACaller) {
  Callees callees;
  std::vector<StackWalk> walks = {Of({3, 2, 1}), Of({3}), Of({3, 2}), Of({1})};
  MarkTorn(&walks, &callees);
  EXPECT_FALSE(walks[0].torn);
  EXPECT_TRUE(walks[1].torn);
  EXPECT_TRUE(walks[2].torn) << "2 was called by 1 in the first one";
  EXPECT_FALSE(walks[3].torn);
}

TEST(MarkTorn, RemembersWhatEarlierLooksSaw) {
  Callees callees;
  std::vector<StackWalk> first = {Of({3, 2, 1})};
  MarkTorn(&first, &callees);
  callees.NextLook();
  std::vector<StackWalk> second = {Of({4, 2})};
  MarkTorn(&second, &callees);
  EXPECT_TRUE(second[0].torn);
}

TEST(MarkTorn, LeavesStacksAloneThatWereCutByUs) {
  Callees callees;
  std::vector<StackWalk> walks = {Of({3, 2, 1}), Of({3, 2})};
  walks[1].truncated = true;
  MarkTorn(&walks, &callees);
  EXPECT_FALSE(walks[1].torn);
}

}  // namespace
}  // namespace lull::relay
