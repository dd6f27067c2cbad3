// Which sync point of B is which of A, though the program was edited in between.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/compare/line_text.h"
#include "query.pb.h"

namespace lull::compare {

// One side's view of a sync point.
struct Place {
  v1::Site site;
  std::string api;
  double rate = 0;  // calls per step
  LineText text = {};
};

struct Match {
  size_t a = 0;
  size_t b = 0;
  bool moved = false;  // to another file
};

// Files that a side's program consists of, as far as its stacks name them.
using FileNames = std::set<std::string>;

// Lines move when something above them is edited, so a line number alone tells nothing.
// What counts is file, function, call, and the text of the line: the same text first,
// and what has another text only where it may be the same line, edited (MayBeOneLine).
// Where that leaves a choice it is the order within the function; where a function has
// more of them on one side, how often they are called and how far the file's other
// places moved. What is left over is looked for in the same file of another checkout or
// environment (Relocation), and then, as moved, in another file. Places without a match
// came or went. `files_*`: beside those of the places.
std::vector<Match> MatchPlaces(std::vector<Place> a, const std::vector<Place>& b,
                               FileNames files_a = {}, FileNames files_b = {});

// Where the files of one side lie on the other, when all of a program was checked out
// into another folder. A file that is where it was says that the folders around it were
// not: then what lies in another one of them was moved. Files of libraries say nothing.
class Relocation {
 public:
  Relocation(const FileNames& from, const FileNames& to);

  // Where a file of `from` is to be on the other side.
  std::string Of(const std::string& file) const;

 private:
  std::string from_, to_;  // folders, without the slash at their ends
};

// The part of a path by which two checkouts, or two environments, agree: what is below
// site-packages, else the last two components.
absl::string_view PathTail(absl::string_view path);

}  // namespace lull::compare
