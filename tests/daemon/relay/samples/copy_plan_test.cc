#include "daemon/relay/samples/copy_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lull::relay {
namespace {

using Kind = CopyPlan::Kind;
using ::testing::ElementsAre;

constexpr Piece kThread{0x10000, 64};
constexpr Piece kChunk{0x200000, 512};

Piece Frame(uint64_t number) { return {0x900000 + number * 0x10000, 80}; }

class CopyPlanTest : public ::testing::Test {
 protected:
  // As the reader does when the stack lies in these pieces.
  void Discover(const std::vector<Piece>& frames) {
    const CopyPlan earlier = plan_;
    plan_.Clear();
    plan_.Add(kThread, Kind::kThread);
    plan_.Add(kChunk, Kind::kFrames);
    for (const Piece& frame : frames) plan_.Add(frame, Kind::kFrames);
    plan_.Settle(earlier);
  }
  bool Has(const Piece& piece) {
    size_t hint = 0;
    const std::string copy(plan_.copy_bytes(), 0);
    return plan_.Find(copy.data(), piece.address, piece.size, &hint) != nullptr;
  }
  std::vector<Piece> Pieces() const {
    std::vector<Piece> pieces;
    plan_.AppendPieces(1, &pieces);
    return pieces;
  }

  CopyPlan plan_;
};

TEST_F(CopyPlanTest, KeepsBothPlacesOfALineThatGoesBackAndForth) {
  Discover({Frame(1)});
  for (int look = 0; look < 300; ++look) {
    plan_.NextLook();
    ASSERT_TRUE(Has(Frame(look / 20 % 2 == 0 ? 1 : 2)) || look == 20) << look;
    if (look == 20) Discover({Frame(2)});
  }
}

TEST_F(CopyPlanTest, ForgetsWhatNoLookNeedsAnyMore) {
  Discover({Frame(1)});
  plan_.NextLook();
  Discover({Frame(2)});
  EXPECT_EQ(plan_.size(), 4u);
  for (int look = 0; look < 100; ++look) {
    plan_.NextLook();
    ASSERT_TRUE(Has(Frame(2)));
  }
  Discover({Frame(2)});
  EXPECT_THAT(Pieces(), ElementsAre(kThread, kChunk, Frame(2)));
}

TEST_F(CopyPlanTest, RemembersOnlySoMuch) {
  for (uint64_t i = 0; i < 1000; ++i) {
    plan_.NextLook();
    Discover({Frame(i)});
  }
  EXPECT_LE(plan_.size(), 2u + 1 + 24);
  EXPECT_TRUE(Has(Frame(999)));
  EXPECT_TRUE(Has(Frame(995))) << "the newest stay";
  EXPECT_FALSE(Has(Frame(900)));
}

TEST_F(CopyPlanTest, RemembersLongerWhatWasNeededAgain) {
  Discover({Frame(1)});
  for (int look = 0; look < 2; ++look) {
    plan_.NextLook();
    ASSERT_TRUE(Has(Frame(1)));
  }
  for (uint64_t i = 100; i < 150; ++i) {
    plan_.NextLook();
    ASSERT_TRUE(plan_.Extend(Frame(i), Kind::kFrames));
    EXPECT_LE(plan_.size(), 2u + 1 + 7) << "of the others, each needed once";
  }
  EXPECT_TRUE(Has(Frame(1)));
  EXPECT_FALSE(Has(Frame(120)));
}

TEST_F(CopyPlanTest, DoesNotCopyAllThatLiesBetweenGenerators) {
  Discover({});
  for (uint64_t i = 0; i < 100; ++i) {
    plan_.NextLook();
    const Piece generator{0x900000 + i * 256, 80};
    ASSERT_TRUE(plan_.Extend(generator, Kind::kFrames));
    ASSERT_TRUE(Has(generator));
    EXPECT_LE(plan_.copy_bytes(), 20u << 10);
  }
}

TEST_F(CopyPlanTest, TellsFramesThatChangeFromTheCStackAroundThem) {
  Discover({});
  ASSERT_TRUE(plan_.Extend({0xf0000000, 1024}, Kind::kLink));
  ASSERT_TRUE(plan_.Extend({0xf1000000, 1024}, Kind::kOnCStack));
  const std::string copy(plan_.copy_bytes(), 0);
  size_t hint = 0;
  auto changed = [&](uint64_t address) {
    std::string other = copy;
    const char* at = plan_.Find(other.data(), address, 1, &hint);
    other[static_cast<size_t>(at - other.data())] = 1;
    return !plan_.SameFrames(copy.data(), other.data());
  };
  EXPECT_TRUE(changed(kThread.address));
  EXPECT_TRUE(changed(kChunk.address + 511));
  EXPECT_FALSE(changed(0xf0000000));
  EXPECT_FALSE(changed(0xf1000000 + 1023));
}

TEST_F(CopyPlanTest, WhatIsRememberedTakesNoRoomFromTheStack) {
  constexpr Piece kLow{0x10000000, 300 << 10};
  constexpr Piece kHigh{0x20000000, 300 << 10};  // both are more than a copy may have
  for (const Piece& piece : {kLow, kHigh, kLow, kHigh}) {
    plan_.NextLook();
    Discover({piece});
    EXPECT_TRUE(Has(piece)) << piece.address;
  }
  plan_.NextLook();
  Discover({Frame(1)});
  EXPECT_TRUE(Has(kHigh)) << "where there is room";
}

TEST_F(CopyPlanTest, ReadsWhatLeadsToFramesBeforeThem) {
  Discover({Frame(1)});
  const Piece link{0xf0000000, 8};
  ASSERT_TRUE(plan_.Extend(link, Kind::kLink));
  EXPECT_THAT(Pieces(), ElementsAre(kThread, link, kChunk, Frame(1)));
  size_t hint = 0;
  const std::string copy(plan_.copy_bytes(), 0);
  EXPECT_EQ(plan_.Find(copy.data(), link.address, 8, &hint), copy.data() + 64);
}

// They change the soonest: read at once, they are still those that the thread had.
TEST_F(CopyPlanTest, ReadsTheInnermostFramesFirst) {
  Discover({Frame(3), Frame(1), Frame(2)});
  EXPECT_THAT(Pieces(), ElementsAre(kThread, kChunk, Frame(3), Frame(1), Frame(2)));
  plan_.NextLook();
  const std::string copy(plan_.copy_bytes(), 0);
  size_t hint = 0;
  uint32_t depth = 0;
  for (const Piece& piece : {Frame(2), Frame(3), Frame(1), kChunk}) {
    plan_.Find(copy.data(), piece.address, piece.size, &hint, depth++);
  }
  plan_.NextLook();
  EXPECT_THAT(Pieces(), ElementsAre(kThread, Frame(2), Frame(3), Frame(1), kChunk));
}

// What changes meanwhile does not tear both ways of reading at the same place.
TEST_F(CopyPlanTest, EverySecondCopyIsReadFromTheEnd) {
  Discover({Frame(1)});
  std::vector<Piece> pieces;
  plan_.AppendPieces(3, &pieces);
  EXPECT_THAT(pieces, ElementsAre(kThread, kChunk, Frame(1), Frame(1), kChunk, kThread,
                                  kThread, kChunk, Frame(1)));
  std::string copy = std::string(Frame(1).size, 'f') + std::string(kChunk.size, 'c') +
                     std::string(kThread.size, 't');
  plan_.TurnRound(copy.data());
  EXPECT_EQ(copy, std::string(kThread.size, 't') + std::string(kChunk.size, 'c') +
                      std::string(Frame(1).size, 'f'));
}

TEST_F(CopyPlanTest, NothingIsAddedToNoPlan) {
  EXPECT_FALSE(plan_.Extend(Frame(1), Kind::kFrames));
  EXPECT_TRUE(plan_.empty());
}

}  // namespace
}  // namespace lull::relay
