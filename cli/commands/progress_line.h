// How far a verb has come: one line on a terminal, over and over; nothing elsewhere.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace lull {

class ProgressLine {
 public:
  // "lull VERB: ..." on stderr.
  ProgressLine(std::string verb, bool quiet);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `share`: of `what`, 0 to 1.
  void Show(const std::string& what, double share);
  void Clear();

 private:
  const std::string verb_;
  const bool on_;
  const absl::Time begun_;
  absl::Time shown_ = absl::InfinitePast();
  bool dirty_ = false;
};

}  // namespace lull
