#include "daemon/check/allowance.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/check/metrics.h"
#include "daemon/check/rule.h"

namespace lull::check {
namespace {

// YYYY-MM-DD: so written, days compare as text does.
bool IsDay(absl::string_view text) {
  if (text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : !absl::ascii_isdigit(text[i])) return false;
  }
  const absl::string_view month = text.substr(5, 2), day = text.substr(8, 2);
  return month >= "01" && month <= "12" && day >= "01" && day <= "31";
}

}  // namespace

std::string Allowance::Name() const {
  std::string name = file;
  if (line > 0) absl::StrAppend(&name, ":", line);
  if (!function.empty()) absl::StrAppend(&name, " ", function);
  return name;
}

std::variant<Allowance, std::string> ParseAllowance(absl::string_view text) {
  constexpr char kForm[] =
      "an allowance is FILE:LINE: REASON, as in 'train.py:47: logs the loss'";
  const size_t end = text.find(": ");
  if (end == absl::string_view::npos) return std::string(kForm);
  Allowance allowance;
  const absl::string_view place = absl::StripAsciiWhitespace(text.substr(0, end));
  if (!ParsePlace(place, &allowance.file, &allowance.line)) return std::string(kForm);
  allowance.reason = std::string(absl::StripAsciiWhitespace(text.substr(end + 2)));
  // 'train.py: 47: logs' is no allowance of the whole file.
  const size_t word = allowance.reason.find_first_not_of("0123456789");
  if (allowance.line == 0 && word != 0 &&
      (word == std::string::npos || allowance.reason[word] == ':')) {
    return std::string(kForm);
  }
  if (std::string flaw = Flaw(allowance); !flaw.empty()) return flaw;
  return allowance;
}

std::string Flaw(const Allowance& allowance) {
  if (allowance.file.empty()) return "it needs a file";
  if (absl::StripAsciiWhitespace(allowance.reason).empty())
    return "it needs a reason: why may this be there?";
  if (allowance.line < 0) return "a line is 1 or more";
  if (!allowance.until.empty() && !IsDay(allowance.until)) {
    return "until is a day, as in \"2027-01-31\"";
  }
  if (allowance.rule.empty()) return "";
  const Metric* metric = FindMetric(allowance.rule);
  return metric != nullptr && metric->of_sites()
             ? ""
             : "rule is the name of a metric of sync points, as in "
               "\"sync.calls_per_step\"";
}

bool Covers(const Allowance& allowance, const v1::Site& site,
            absl::string_view metric) {
  return IsFile(site.file(), allowance.file) &&
         (allowance.line == 0 || allowance.line == site.line()) &&
         (allowance.function.empty() || allowance.function == site.function()) &&
         (allowance.rule.empty() || allowance.rule == metric);
}

bool IsOver(const Allowance& allowance, absl::string_view today) {
  return !allowance.until.empty() && allowance.until < today;
}

}  // namespace lull::check
