// A rule of a gate: what must not be. "sync.wasted_percent > 2" fails where it holds.
//
//   RULE      METRIC [ "(" SELECTOR ")" ] OPERATOR NUMBER
//   SELECTOR  new | FILE | FILE:LINE
//   OPERATOR  > >= < <= == !=
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "daemon/check/metrics.h"

namespace lull::check {

enum class Operator { kAbove, kAtLeast, kBelow, kAtMost, kEqual, kUnequal };

const char* Sign(Operator op);  // ">="
bool Holds(double value, Operator op, double bound);

struct Selector {
  bool only_new = false;  // not in the baseline, or there in another file
  std::string file;       // "": any
  int line = 0;           // 0: any
};

struct Rule {
  std::string text;
  Metric metric;
  Selector selector;
  Operator op = Operator::kAbove;
  double bound = 0;

  bool NeedsBaseline() const {
    return selector.only_new || metric.measure == Measure::kStepChange;
  }
};

struct RuleError {
  size_t at = 0;       // of the first wrong character
  size_t length = 1;   // 0 at the end
  std::string what;    // and what would be right
  std::string metric;  // that is none; "" if that is not the error
};

std::variant<Rule, RuleError> ParseRule(absl::string_view text);

// Whether `path` is the file `wanted`: itself, or a file below a folder.
bool IsFile(absl::string_view path, absl::string_view wanted);

// "./src/train.py" -> "src/train.py", as sites have it.
void WithoutDot(std::string* file);

// "train.py:47" -> the file, and its line or 0. False: no file, or no line number.
bool ParsePlace(absl::string_view text, std::string* file, int* line);

}  // namespace lull::check
