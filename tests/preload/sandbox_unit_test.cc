// Whose seccomp filters are those around a thread?
#include <gtest/gtest.h>

#include "preload/entry/sandbox.h"

namespace lull {
namespace {

constexpr SeccompState kNothing = {0, 0};
constexpr SeccompState kNotTold = {-1, -1};

TEST(Sandbox, ReadsTheLinesThatCount) {
  SeccompState state;
  for (const char* line : {"Seccomp:\t2", "Seccomp_filters:\t13", "NoNewPrivs:\t1",
                           "Seccomp_filters:\tx", "Seccomp:\t"}) {
    read_seccomp_line(line, &state);
  }
  EXPECT_EQ(state.mode, 2);
  EXPECT_EQ(state.count, 13);
}

TEST(Sandbox, WithoutFiltersThereIsNone) {
  EXPECT_FALSE(is_of_our_own(kNothing, -1, kNothing));
  EXPECT_FALSE(is_of_our_own(kNotTold, -1, kNotTold)) << "without /proc none is known";
}

TEST(Sandbox, WhatTheFirstProcessHasIsTheRuntimes) {
  EXPECT_FALSE(is_of_our_own({2, 1}, -1, {2, 1}));
  EXPECT_TRUE(is_of_our_own({2, 2}, -1, {2, 1}));
  EXPECT_TRUE(is_of_our_own({2, 1}, -1, kNothing));
  EXPECT_TRUE(is_of_our_own({2, 1}, -1, kNotTold)) << "nobody says whose it is";
}

TEST(Sandbox, WhatLullRunHasIsNoneOfTheJobs) {
  EXPECT_FALSE(is_of_our_own({2, 3}, 3, kNothing));
  EXPECT_TRUE(is_of_our_own({2, 4}, 3, kNothing));
}

TEST(Sandbox, WhereNobodyCountsThereIsOneOfItsOwnIfTheFirstProcessHasNone) {
  EXPECT_TRUE(is_of_our_own({2, -1}, -1, {0, -1}));
  EXPECT_FALSE(is_of_our_own({2, -1}, -1, {2, -1}));
}

}  // namespace
}  // namespace lull
