#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/render/diff.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

using compare::Change;
using compare::Comparison;
using compare::StepTime;
using compare::SyncChange;
using compare::Verdict;

constexpr size_t kMostPlaces = 4;

std::string NumberWord(size_t count) {
  static constexpr const char* kWords[] = {"no",    "one",  "two", "three",
                                           "four",  "five", "six", "seven",
                                           "eight", "nine", "ten"};
  return count < std::size(kWords) ? kWords[count] : FormatCount(count);
}

// One line that makes several calls is one place.
std::vector<SyncChange> ByLine(const std::vector<SyncChange>& changes, bool of_b) {
  std::vector<SyncChange> lines;
  for (const SyncChange& change : changes) {
    const v1::Site& site = of_b ? change.b.site : change.a.site;
    const bool known =
        std::any_of(lines.begin(), lines.end(), [&](const SyncChange& line) {
          const v1::Site& other = of_b ? line.b.site : line.a.site;
          return site.line() > 0 && other.line() == site.line() &&
                 other.file() == site.file();
        });
    if (!known) lines.push_back(change);
  }
  return lines;
}

// "aggregation.py:90, :562": a file that was just named is not named again.
std::string Places(const std::vector<SyncChange>& changes, bool of_b) {
  std::vector<std::string> places;
  const std::string* last = nullptr;
  for (const SyncChange& change : changes) {
    const v1::Site& site = of_b ? change.b.site : change.a.site;
    if (places.size() == kMostPlaces) {
      places.push_back(absl::StrCat(changes.size() - kMostPlaces, " more"));
      break;
    }
    const bool again = last != nullptr && *last == site.file() && site.line() > 0;
    places.push_back(site.file().empty() ? FormatSite(site)
                     : again             ? absl::StrCat(":", site.line())
                             : absl::StrCat(ShortPath(site.file()), ":", site.line()));
    last = &site.file();
  }
  return absl::StrJoin(places, ", ");
}

std::string SyncWords(const std::vector<SyncChange>& all, const char* what, bool of_b) {
  if (all.empty()) return "";
  const std::vector<SyncChange> changes = ByLine(all, of_b);
  return absl::StrCat("; ", NumberWord(changes.size()),
                      changes.size() == 1 ? " sync " : " syncs ", what, " (",
                      Places(changes, of_b), ")");
}

std::string ChangedWords(const std::vector<SyncChange>& changes) {
  if (changes.size() != 1) {
    return SyncWords(changes, "called more or less often", true);
  }
  return absl::StrCat("; one sync changed (", Places(changes, true), ": ",
                      Digits(changes[0].a.calls_per_step, 3), " → ",
                      Digits(changes[0].b.calls_per_step, 3), " calls a step)");
}

std::string AllSyncWords(const Comparison& comparison) {
  return absl::StrCat(SyncWords(comparison.syncs.gone, "gone", false),
                      SyncWords(comparison.syncs.came, "new", true),
                      ChangedWords(comparison.syncs.changed));
}

// "12.3 % ± 1.1"
std::string WithError(const Change& change) {
  return absl::StrFormat("%.1f %% ± %.1f", std::abs(change.percent),
                         (change.high_percent - change.low_percent) / 2);
}

std::string RunsWords(const StepTime& step) {
  const std::string asked = absl::StrCat(Digits(step.asked_percent, 3), " %");
  if (!step.runs_needed)
    return absl::StrCat(asked, " would take over 1,000 runs a side");
  return absl::StrFormat("%s would take about %d runs a side", asked,
                         *step.runs_needed);
}

// What is said of times that are not shown to differ.
std::string NotShown(const StepTime& step) {
  const Change& change = *step.change;
  if (!step.known) {
    const bool differs = change.low_percent > 0 || change.high_percent < 0;
    return differs
               ? absl::StrFormat(
                     "; B's steps took %.1f %% %s in these runs, which does not show "
                     "that B is %s",
                     std::abs(change.percent), change.percent < 0 ? "less" : "more",
                     change.percent < 0 ? "faster" : "slower")
               : "";
  }
  if (change.detectable_percent <= step.asked_percent) {
    return absl::StrCat("; they could have shown ",
                        Digits(change.detectable_percent, 2), " %");
  }
  return absl::StrCat("; ", RunsWords(step));
}

}  // namespace

std::string Digits(double value, int digits) {
  // "%g" writes 220 as 2.2e+02.
  if (value >= std::pow(10, digits) - 0.5 && value < 1e15) {
    return FormatCount(static_cast<uint64_t>(std::llround(value)));
  }
  return absl::StrFormat("%.*g", digits, value);
}

std::string DiffHeadline(const Comparison& comparison) {
  switch (comparison.verdict) {
    case Verdict::kFaster:
    case Verdict::kSlower:
      return absl::StrCat(
          "B is ", WithError(*comparison.step->change),
          comparison.verdict == Verdict::kFaster ? " faster" : " slower",
          AllSyncWords(comparison));
    case Verdict::kSyncsChanged: {
      const std::string words = AllSyncWords(comparison).substr(2);  // after "; "
      const StepTime& step = *comparison.step;
      return absl::StrCat(
          words, step.known ? "; no difference of times that these runs can show" : "",
          NotShown(step));
    }
    case Verdict::kNoDifference:
      return absl::StrCat("no difference that these runs can show",
                          NotShown(*comparison.step));
    case Verdict::kCannotJudge:
      break;
  }
  return absl::StrCat("cannot be judged: ", absl::StrJoin(comparison.reasons, "; "));
}

}  // namespace lull
