#include "daemon/check/rule.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lull::check {
namespace {

struct OperatorSign {
  Operator op;
  const char* sign;
};
// Longer ones first: they begin like others.
constexpr OperatorSign kSigns[] = {
    {Operator::kAtLeast, ">="}, {Operator::kAtMost, "<="}, {Operator::kEqual, "=="},
    {Operator::kUnequal, "!="}, {Operator::kAbove, ">"},   {Operator::kBelow, "<"}};

bool IsOfName(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  std::variant<Rule, RuleError> Parse() {
    rule_.text = std::string(absl::StripAsciiWhitespace(text_));
    if (Metric() && Selected() && Comparison() && Bound()) return rule_;
    return error_;
  }

 private:
  bool Fail(size_t at, size_t length, std::string what, std::string metric = "") {
    error_ = {at, at < text_.size() ? std::max<size_t>(length, 1) : 0, std::move(what),
              std::move(metric)};
    return false;
  }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  bool Metric() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && IsOfName(text_[at_])) ++at_;
    const absl::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) {
      return Fail(begin, 1, "a metric is wanted here, as in sync.wasted_percent > 2");
    }
    const check::Metric* metric = FindMetric(name);
    if (metric == nullptr) {
      return Fail(begin, name.size(), "there is no such metric", std::string(name));
    }
    rule_.metric = *metric;
    return true;
  }

  bool Selected() {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != '(') return true;
    const size_t open = at_;
    // The last one before the bound: folders may have parentheses in their names.
    const size_t close = text_.rfind(')');
    if (close == absl::string_view::npos || close < open) {
      return Fail(text_.size(), 0, "the selector is not closed: ) is wanted");
    }
    if (!rule_.metric.of_sites()) {
      return Fail(open, close - open + 1,
                  "only metrics of sync points (sync.*) have a selector");
    }
    const absl::string_view inner =
        absl::StripAsciiWhitespace(text_.substr(open + 1, close - open - 1));
    at_ = close + 1;
    Selector& selector = rule_.selector;
    if (inner == "new") {
      selector.only_new = true;
      return true;
    }
    const bool names_file = inner.find_first_of("./:") != absl::string_view::npos;
    if (!names_file || !ParsePlace(inner, &selector.file, &selector.line)) {
      return Fail(open + 1, close - open - 1,
                  "the selector is one of (new), (FILE) and (FILE:LINE), as in "
                  "(train.py:47)");
    }
    return true;
  }

  bool Comparison() {
    SkipSpace();
    for (const OperatorSign& one : kSigns) {
      if (!absl::StartsWith(text_.substr(at_), one.sign)) continue;
      rule_.op = one.op;
      const bool exact = one.op == Operator::kEqual || one.op == Operator::kUnequal;
      if (exact && rule_.metric.measure == Measure::kStepChange) {
        return Fail(at_, 2, "a change is known within an interval: one of > >= < <=");
      }
      at_ += std::string(one.sign).size();
      return true;
    }
    return Fail(at_, 1, "a comparison is wanted here: one of > >= < <= == !=");
  }

  bool Bound() {
    SkipSpace();
    size_t end = at_;
    while (end < text_.size() &&
           (absl::ascii_isalnum(text_[end]) || text_[end] == '.' || text_[end] == '+' ||
            text_[end] == '-')) {
      ++end;
    }
    const absl::string_view number = text_.substr(at_, end - at_);
    const bool hexadecimal = number.find_first_of("xX") != absl::string_view::npos;
    if (hexadecimal || !absl::SimpleAtod(number, &rule_.bound) ||
        !std::isfinite(rule_.bound)) {
      return Fail(at_, number.size(), "a number is wanted here, without a unit");
    }
    at_ = end;
    SkipSpace();
    if (at_ == text_.size()) return true;
    return Fail(at_, text_.size() - at_,
                "the rule is over before this: each rule has one comparison, and the "
                "unit is in the metric's name");
  }

  const absl::string_view text_;
  size_t at_ = 0;
  Rule rule_;
  RuleError error_;
};

}  // namespace

const char* Sign(Operator op) {
  return std::find_if(std::begin(kSigns), std::end(kSigns),
                      [op](const OperatorSign& one) { return one.op == op; })
      ->sign;
}

bool Holds(double value, Operator op, double bound) {
  switch (op) {
    case Operator::kAbove:
      return value > bound;
    case Operator::kAtLeast:
      return value >= bound;
    case Operator::kBelow:
      return value < bound;
    case Operator::kAtMost:
      return value <= bound;
    case Operator::kEqual:
      return value == bound;
    case Operator::kUnequal:
      break;
  }
  return value != bound;
}

std::variant<Rule, RuleError> ParseRule(absl::string_view text) {
  return Parser(text).Parse();
}

bool IsFile(absl::string_view path, absl::string_view wanted) {
  return path == wanted || (!wanted.empty() && wanted[0] != '/' &&
                            absl::EndsWith(path, absl::StrCat("/", wanted)));
}

bool ParsePlace(absl::string_view text, std::string* file, int* line) {
  *line = 0;
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos) {
    const absl::string_view number = text.substr(colon + 1);
    if (!absl::SimpleAtoi(number, line) || *line <= 0) return false;
    text = text.substr(0, colon);
  }
  *file = std::string(text);
  WithoutDot(file);
  return !file->empty();
}

void WithoutDot(std::string* file) {
  absl::string_view rest = *file;
  while (absl::ConsumePrefix(&rest, "./")) {
  }
  file->erase(0, file->size() - rest.size());
}

}  // namespace lull::check
