// What rules make of what was measured. Pure: it has no numbers but those of the
// comparisons that it is given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/check/allowance.h"
#include "daemon/check/rule.h"
#include "daemon/compare/comparison.h"

namespace lull::check {

enum class Outcome { kPassed, kFailed, kCannotJudge };

// What a value is made of: a sync point, or a cause of idle time.
struct Part {
  std::string name;  // "sync", of a cause; "" of a sync point
  v1::Site site;
  std::string api;
  double value = 0;
  // Of a sync point that the baseline does not have: "new", "moved" to another file, or
  // "rare" (called too seldom to say so); else "".
  std::string change;
  std::string moved_from;  // "/job/old.py:12"
  std::string allowed;     // the reason; "" if it counts
};

struct Measured {
  std::optional<double> value;
  // What is known of it where it is known within an interval.
  std::optional<double> low;
  std::optional<double> high;
  std::string of;  // "rank 0": the value is of the process that has most; "": of all
  std::string why_not;      // there is no value, or nothing may be concluded from it
  std::vector<Part> parts;  // the largest first; those that are allowed have no part
};

struct Judgement {
  Rule rule;
  Outcome outcome = Outcome::kCannotJudge;
  Measured measured;
};

struct Verdict {
  Outcome outcome = Outcome::kCannotJudge;  // the worst: one that failed is
  std::vector<Judgement> rules;
  std::vector<std::string> warnings;
  std::vector<compare::RunFacts> runs;
  std::vector<compare::RunFacts> baseline;  // empty: none
};

// Comparisons whose side B is the job. Absent: no rule asks for it.
struct Evidence {
  std::optional<compare::Comparison> alone;     // A is the job, too
  std::optional<compare::Comparison> baseline;  // A is the baseline, in the same steps
  // A is the baseline, and each run is there with all of its own steady steps: a sync
  // point that came where a shorter baseline has no steps is new, too. Of (new).
  std::optional<compare::Comparison> own_steps;
};

// What is let pass.
struct Leave {
  std::vector<Allowance> allowances;
  bool failed_job = false;  // jobs that a signal or an error ended are judged, too
};

Verdict Judge(const std::vector<Rule>& rules, const Evidence& evidence,
              const Leave& leave, absl::string_view today);

}  // namespace lull::check
