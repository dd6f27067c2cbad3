#include "daemon/aggregate/cell.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace lull::aggregate {
namespace {

TEST(Cell, OfTwoStretchesInARowEqualsTheCellOfBoth) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    Cell whole, first, second;
    size_t cut = random() % 20;
    for (size_t i = 0; i < 20; ++i) {
      Cell& part = i < cut ? first : second;
      uint64_t bytes = random() % 100;
      for (Cell* cell : {&whole, &part}) {
        if (bytes % 2 == 0) {
          cell->Add(bytes, bytes * 2, bytes * 3);
          cell->Allocate(bytes);
        } else {
          cell->Release(bytes, 1);
        }
      }
    }
    first.Append(second);
    EXPECT_EQ(first, whole);
  }
}

TEST(Cell, RemembersThePeakAndNotOnlyTheEnd) {
  Cell cell;
  cell.Allocate(100);
  cell.Allocate(50);
  cell.Release(100, 1);
  cell.Allocate(20);
  EXPECT_EQ(cell.live, 70);
  EXPECT_EQ(cell.peak, 150);
  EXPECT_EQ(cell.frees, 1u);
}

}  // namespace
}  // namespace lull::aggregate
