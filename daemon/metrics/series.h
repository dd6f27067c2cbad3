// What the report engine says of a run as series. No number here is lull's second
// opinion on anything: each is one of the engine's, or a sum of those of a rank's
// processes.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/metrics/exposition.h"
#include "daemon/query/run_totals.h"

namespace lull::metrics {

struct Bounds {
  size_t series = 20'000;         // of an answer, without those about the answer itself
  size_t series_of_a_rank = 500;  // a rank with more is left out
  size_t runs = 64;
  size_t ranks = 256;  // of all runs
};

std::vector<Sample> SeriesOfRun(const query::RunTotals& run);
std::vector<Sample> SeriesOfRank(const std::string& run, const query::RankTotals& rank);

// Adds a run with those of its ranks that `bounds` have room for, each whole or not at
// all. The number of ranks that are left out, here and in `run` already. A run that has
// no room itself adds nothing, and all of its ranks are left out.
size_t AddRun(const query::RunTotals& run, const Bounds& bounds, Exposition* out);

}  // namespace lull::metrics
