// Which sync point of B is which of A, though the program was edited in between.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull::compare {

// One side's view of a sync point.
struct Place {
  v1::Site site;
  std::string api;
  double rate = 0;  // calls per step
};

struct Match {
  size_t a = 0;
  size_t b = 0;
  bool moved = false;  // to another file
};

// Lines move when something above them is edited, so a line number alone tells nothing.
// What counts is file, function, call, and the order within the function; where a
// function has more of them on one side, how often they are called and how far the
// file's other places moved. What is left over is looked for in the same file below
// another folder, and then, as moved, in another file. Places without a match came or
// went.
std::vector<Match> MatchPlaces(const std::vector<Place>& a,
                               const std::vector<Place>& b);

// The part of a path by which two checkouts, or two environments, agree: what is below
// site-packages, else the last two components.
absl::string_view PathTail(absl::string_view path);

}  // namespace lull::compare
