#include "daemon/check/judge.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/check/measure.h"
#include "daemon/words/format.h"

namespace lull::check {
namespace {

Outcome OutcomeOf(const Rule& rule, const Measured& measured) {
  // Every comparison with what is no number is false, and so would be every rule.
  if (!measured.why_not.empty() || !measured.value || !std::isfinite(*measured.value)) {
    return Outcome::kCannotJudge;
  }
  return Holds(*measured.value, rule.op, rule.bound) ? Outcome::kFailed
                                                     : Outcome::kPassed;
}

// A failure is one whatever else could not be judged; nothing at all has not passed.
Outcome Worst(const std::vector<Judgement>& rules) {
  auto any = [&rules](Outcome outcome) {
    return std::any_of(rules.begin(), rules.end(), [outcome](const Judgement& one) {
      return one.outcome == outcome;
    });
  };
  if (any(Outcome::kFailed)) return Outcome::kFailed;
  if (any(Outcome::kCannotJudge) || rules.empty()) return Outcome::kCannotJudge;
  return Outcome::kPassed;
}

// Whether there is a sync point that it is of.
bool IsOfAny(const Allowance& allowance, const Evidence& evidence) {
  auto covers = [&allowance](const std::vector<compare::SyncChange>& changes) {
    return std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
      return change.b.calls > 0 && Covers(allowance, change.b.site, allowance.rule);
    });
  };
  for (const auto* comparison :
       {&evidence.own_steps, &evidence.baseline, &evidence.alone}) {
    if (!*comparison) continue;
    const compare::SyncChanges& syncs = (*comparison)->syncs;
    if (covers(syncs.came) || covers(syncs.moved) || covers(syncs.rare) ||
        covers(syncs.same) || covers(syncs.changed)) {
      return true;
    }
  }
  return false;
}

const std::optional<compare::Comparison>& ComparisonFor(const Rule& rule,
                                                        const Evidence& evidence) {
  if (rule.selector.only_new) return evidence.own_steps;
  return rule.NeedsBaseline() ? evidence.baseline : evidence.alone;
}

void AddOnce(const std::vector<std::string>& sentences, std::vector<std::string>* out) {
  for (const std::string& sentence : sentences) {
    if (std::find(out->begin(), out->end(), sentence) == out->end()) {
      out->push_back(sentence);
    }
  }
}

// What passes (new) though its line reads otherwise: text alone does not tell an edit
// from another sync that took its place.
void AddEdited(const compare::SyncChanges& syncs, std::vector<std::string>* out) {
  auto place = [](const v1::Site& site) {
    return absl::StrCat(ShortPath(site.file()), ":", site.line());
  };
  for (const auto* changes : {&syncs.same, &syncs.changed}) {
    for (const compare::SyncChange& change : *changes) {
      if (!change.edited || change.b.calls == 0) continue;
      AddOnce(
          {absl::StrCat("the sync at ", place(change.b.site),
                        " is taken for that of the baseline at ", place(change.a.site),
                        ", whose line reads otherwise: edited, or replaced by one "
                        "like it")},
          out);
    }
  }
}

void AddEditedOf(const compare::Comparison& comparison, std::vector<std::string>* out) {
  AddEdited(comparison.syncs, out);
  for (const compare::OfProcess& one : comparison.each_process) {
    AddEdited(one.syncs, out);
  }
}

}  // namespace

Verdict Judge(const std::vector<Rule>& rules, const Evidence& evidence,
              const Leave& leave, absl::string_view today) {
  Verdict verdict;
  Leave in_force;
  in_force.failed_job = leave.failed_job;
  for (const Allowance& allowance : leave.allowances) {
    if (!IsOver(allowance, today)) {
      in_force.allowances.push_back(allowance);
      continue;
    }
    verdict.warnings.push_back(absl::StrCat("the allowance of ", allowance.Name(),
                                            " ended with ", allowance.until));
  }
  for (const Rule& rule : rules) {
    Judgement judgement{rule, Outcome::kCannotJudge, {}};
    const auto& comparison = ComparisonFor(rule, evidence);
    if (comparison) {
      judgement.measured = MeasureFor(rule, *comparison, in_force);
    } else {
      judgement.measured.why_not = "there is no baseline";
    }
    judgement.outcome = OutcomeOf(rule, judgement.measured);
    verdict.rules.push_back(std::move(judgement));
  }
  verdict.outcome = Worst(verdict.rules);
  for (const auto* comparison :
       {&evidence.own_steps, &evidence.baseline, &evidence.alone}) {
    if (!*comparison) continue;
    AddOnce((*comparison)->warnings, &verdict.warnings);
    if (verdict.runs.empty()) verdict.runs = (*comparison)->b;
    const bool of_baseline = comparison != &evidence.alone;
    if (of_baseline && verdict.baseline.empty()) verdict.baseline = (*comparison)->a;
  }
  // Asked for a rule about (new) alone.
  if (evidence.own_steps) AddEditedOf(*evidence.own_steps, &verdict.warnings);
  for (const Judgement& one : verdict.rules) {
    const bool of_none = one.measured.value && one.measured.parts.empty();
    if (one.rule.selector.file.empty() || !of_none) continue;
    verdict.warnings.push_back(
        absl::StrCat("the selector of '", one.rule.text,
                     "' is of no sync point in the steps of this job"));
  }
  for (const Allowance& allowance : in_force.allowances) {
    if (IsOfAny(allowance, evidence)) continue;
    verdict.warnings.push_back(absl::StrCat("the allowance of ", allowance.Name(),
                                            " is of no sync point of this job"));
  }
  return verdict;
}

}  // namespace lull::check
