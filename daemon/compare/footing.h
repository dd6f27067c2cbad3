// Whether two sides may be compared at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/compare/run.h"

namespace lull::compare {

struct Footing {
  // Why nothing may be concluded: no steps, lost data, another GPU, another mode.
  std::vector<std::string> reasons;
  // Why no times may be compared; counts may.
  std::vector<std::string> untimed;
  // What a reader should know.
  std::vector<std::string> warnings;
};

// `processes` of all runs are chosen.
Footing FootingOf(const Runs& a, const Runs& b);

// GPU records that were dropped, lost or not understood.
uint64_t MissingRecords(const v1::Gpu& gpu);

// Why not all of a run was recorded; "" where it was.
std::string Incomplete(const v1::ReportReply& reply);

}  // namespace lull::compare
