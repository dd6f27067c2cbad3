// What is said of a rank that came late.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull {

// "sleeping at ddp.py:8 augment", "in garbage collections"
std::string CauseWords(const v1::LateCause& cause);

// "rank 1 was late in 20 of 200 steps, by 50.0 ms on average, sleeping at ddp.py:8
// augment"
std::string LateWords(const v1::Ranks& ranks, const v1::RankRow& row,
                      const v1::LateCause& cause);

// "the other rank", "the other 7 ranks"
std::string OthersWords(const v1::Ranks& ranks);

// The same as a sentence, and another: "Rank 1 was late [...]. That cost the other rank
// 1.00 s."
std::string LateSentences(const v1::Ranks& ranks, const v1::RankRow& row,
                          const v1::LateCause& cause);

}  // namespace lull
