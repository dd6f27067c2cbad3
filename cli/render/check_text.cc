#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/render/check.h"
#include "daemon/compare/run.h"
#include "daemon/words/format.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

using check::Judgement;
using check::Measured;
using check::Outcome;
using check::Part;
using check::Rule;

constexpr size_t kMostParts = 10;  // shown of a rule; JSON has them all
constexpr size_t kLongestSentence = 2000;

std::string ValueText(const Rule& rule, double value) {
  return absl::StrFormat("%.4g%s%s", value, rule.metric.unit.empty() ? "" : " ",
                         rule.metric.unit);
}

const char* OutcomeWords(Outcome outcome) {
  return outcome == Outcome::kPassed   ? "passed"
         : outcome == Outcome::kFailed ? "failed"
                                       : "cannot be judged";
}

void AppendParts(const Judgement& judgement, std::string* text) {
  size_t shown = 0;
  for (const Part& part : judgement.measured.parts) {
    if (shown++ == kMostParts) {
      absl::StrAppend(text, "    ", judgement.measured.parts.size() - kMostParts,
                      " more\n");
      return;
    }
    absl::StrAppend(text, "    ", PartSentence(judgement.rule, part), "\n");
  }
}

std::string RunsText(const std::vector<compare::RunFacts>& runs) {
  std::vector<std::string> names;
  uint64_t steps = 0;
  for (const compare::RunFacts& run : runs) {
    names.push_back(compare::NameOf(run.job));
    steps += run.steps;
  }
  return absl::StrCat(absl::StrJoin(names, ", "), ", ", Counted(steps, "steady step"));
}

}  // namespace

const char* OutcomeKey(Outcome outcome) {
  return outcome == Outcome::kCannotJudge ? "cannot_judge" : OutcomeWords(outcome);
}

int ExitStatusOf(Outcome outcome) {
  return outcome == Outcome::kPassed ? 0 : outcome == Outcome::kFailed ? 1 : 3;
}

std::string RuleSentence(const Judgement& judgement) {
  const Measured& measured = judgement.measured;
  std::string text;
  if (measured.value) {
    text = absl::StrCat("measured ", ValueText(judgement.rule, *measured.value));
  }
  if (measured.value && !measured.of.empty()) {
    absl::StrAppend(&text, ", ", measured.of);
  }
  if (measured.low && measured.high) {
    absl::StrAppendFormat(&text, " (95 %% interval %.4g to %.4g)", *measured.low,
                          *measured.high);
  }
  if (!measured.why_not.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    Shortened(measured.why_not, kLongestSentence));
  }
  return text;
}

std::string PartSentence(const Rule& rule, const Part& part) {
  const std::string value = ValueText(rule, part.value);
  if (!part.name.empty()) return absl::StrCat(Printable(part.name), ": ", value);
  std::string text = absl::StrCat(Shortened(part.api, 100), " at ",
                                  Shortened(FormatSite(part.site), 400), ": ", value);
  if (part.change == "moved") {
    absl::StrAppend(&text, " (new: was at ", Shortened(ShortPath(part.moved_from), 200),
                    ")");
  } else if (!part.change.empty()) {
    absl::StrAppend(&text, " (", part.change, ")");
  }
  if (!part.allowed.empty()) {
    absl::StrAppend(&text, ", allowed: ", Shortened(part.allowed, 400));
  }
  return text;
}

std::string CheckText(const check::Verdict& verdict) {
  std::string text;
  size_t failed = 0, unknown = 0;
  for (const Judgement& judgement : verdict.rules) {
    failed += judgement.outcome == Outcome::kFailed;
    unknown += judgement.outcome == Outcome::kCannotJudge;
    absl::StrAppend(&text, OutcomeWords(judgement.outcome), "  ",
                    Shortened(judgement.rule.text, 200), "  ", RuleSentence(judgement),
                    "\n");
    AppendParts(judgement, &text);
  }
  for (const std::string& warning : verdict.warnings) {
    absl::StrAppend(&text, "note: ", Shortened(warning, kLongestSentence), "\n");
  }
  absl::StrAppend(&text, OutcomeWords(verdict.outcome), ": ");
  if (failed > 0) {
    absl::StrAppend(&text, failed, " of ", Counted(verdict.rules.size(), "rule"));
    if (unknown > 0) absl::StrAppend(&text, ", and ", unknown, " cannot be judged");
  } else if (unknown > 0) {
    absl::StrAppend(&text, unknown, " of ", Counted(verdict.rules.size(), "rule"));
  } else {
    absl::StrAppend(&text, Counted(verdict.rules.size(), "rule"));
  }
  absl::StrAppend(&text, "; ", RunsText(verdict.runs));
  if (!verdict.baseline.empty()) {
    absl::StrAppend(&text, "; against ", RunsText(verdict.baseline));
  }
  return absl::StrCat(text, "\n");
}

}  // namespace lull
