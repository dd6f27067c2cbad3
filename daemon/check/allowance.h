// A sync point that may be there, and why: what it does is left out of the sums that
// rules judge.
#pragma once

#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull::check {

struct Allowance {
  std::string file;      // always there; see IsFile()
  int line = 0;          // 0: any
  std::string function;  // "": any
  std::string rule;      // the name of a metric; "": all of them
  std::string reason;    // always there
  std::string until;     // "2027-01-31", the last day; "": no end

  // "train.py:47 Trainer.log"
  std::string Name() const;
};

// "FILE[:LINE]: REASON". A sentence if it is none.
std::variant<Allowance, std::string> ParseAllowance(absl::string_view text);

// What is wrong with one; "" if nothing is.
std::string Flaw(const Allowance& allowance);

bool Covers(const Allowance& allowance, const v1::Site& site, absl::string_view metric);
// `today` as `until` is written.
bool IsOver(const Allowance& allowance, absl::string_view today);

}  // namespace lull::check
