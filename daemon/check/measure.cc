#include "daemon/check/measure.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/compare/run.h"
#include "daemon/compare/steady_steps.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/format.h"

namespace lull::check {
namespace {

using compare::Comparison;
using compare::RunFacts;
using compare::SyncChange;
using compare::SyncRate;

constexpr double kMiB = 1 << 20;

// A step of the runs, as their device times are told. 0: not all were traced.
double GpuStepMs(const std::vector<RunFacts>& runs) {
  double sum = 0;
  for (const RunFacts& run : runs) {
    if (run.gpu_step_ms <= 0) return 0;
    sum += run.gpu_step_ms;
  }
  return runs.empty() ? 0 : sum / D(runs.size());
}

// Why what is known of a run is not what a metric is made of; "" if it is.
std::string WhyNotOf(const Metric& metric, const RunFacts& run) {
  if (!run.job.ended() && !run.job.end_unseen()) return " is not over yet";
  if (run.processes_left_out > 0) {
    return absl::StrCat(" has more than ", compare::kMostProcesses,
                        " processes that make steps; no more are asked about");
  }
  if (run.processes > 0 && !run.ranks_without_steps.empty()) {
    return absl::StrCat(": too few steps were seen of rank ",
                        absl::StrJoin(run.ranks_without_steps, ", "));
  }
  // That there are no steps is said already.
  if (metric.of_sites() && run.processes > 0 && !run.gpu_calls) {
    return absl::StrCat(run.processes > 1 ? ": a process" : "",
                        " made no GPU call that lull saw");
  }
  if (metric.of_gpu() && run.gpu_step_ms <= 0) {
    return absl::StrCat(" has no GPU truth for its steps, or for less than one",
                        run.processes > 1 ? " in all of its processes" : "",
                        run.gpu_missing.empty() ? "" : ": ", run.gpu_missing);
  }
  if (metric.of_gpu() && !run.gpu_complete) return " misses GPU records";
  if (metric.part == "gc" && !run.collections_seen) {
    return ": garbage collections of a process could not be seen";
  }
  if (metric.part == "data" && !run.loads_seen) {
    return ": of a process with an unknown PyTorch only what blocked in its DataLoader "
           "was seen";
  }
  return "";
}

// Why nothing may be said of what a metric is made of; "" if it may.
std::string WhyNotMeasured(const Rule& rule, const Comparison& comparison) {
  std::vector<std::string> why = comparison.reasons;
  for (const auto* side : {&comparison.a, &comparison.b}) {
    for (const RunFacts& run : *side) {
      std::string sentence = WhyNotOf(rule.metric, run);
      if (sentence.empty()) continue;
      sentence = absl::StrCat(compare::NameOf(run.job), sentence);
      if (std::find(why.begin(), why.end(), sentence) == why.end()) {
        why.push_back(std::move(sentence));
      }
    }
  }
  return absl::StrJoin(why, "; ");
}

double ValueOf(const Metric& metric, const SyncRate& rate, double gpu_step_ms) {
  switch (metric.measure) {
    case Measure::kSyncCalls:
      return rate.calls_per_step;
    case Measure::kSyncBlocked:
      return rate.blocked_ms_per_step;
    case Measure::kSyncWasted:
      return rate.wasted_ms_per_step.value_or(0);
    default:
      return Percent(rate.wasted_ms_per_step.value_or(0), gpu_step_ms);
  }
}

std::string PlaceOf(const v1::Site& site) {
  return absl::StrCat(site.file(), ":", site.line());
}

class SyncSum {
 public:
  SyncSum(const Rule& rule, const Comparison& comparison,
          const std::vector<Allowance>& allowances)
      : rule_(rule), allowances_(allowances), gpu_step_ms_(GpuStepMs(comparison.b)) {
    const compare::SyncChanges& syncs = comparison.syncs;
    const bool compared = rule.NeedsBaseline();
    Add(syncs.came, compared ? "new" : "");
    Add(syncs.moved, compared ? "moved" : "");
    Add(syncs.rare, compared ? "rare" : "");
    if (rule.selector.only_new) {
      AddUnplaced(syncs.changed);
      return;
    }
    Add(syncs.same, "");
    Add(syncs.changed, "");
  }

  Measured Result() && {
    std::stable_sort(
        result_.parts.begin(), result_.parts.end(),
        [](const Part& one, const Part& other) { return one.value > other.value; });
    result_.value = sum_;
    if (Decides(rare_)) {
      result_.why_not =
          "a sync point that the baseline was not seen to have was called too seldom "
          "to say that it is new";
    } else if (Decides(rare_ + unplaced_)) {
      result_.why_not =
          "a sync point whose line is not known may be one that the rule is about";
    }
    return std::move(result_);
  }

 private:
  void Add(const std::vector<SyncChange>& changes, const char* kind) {
    for (const SyncChange& change : changes) {
      const SyncRate& rate = change.b;
      if (rate.calls == 0) continue;
      if (!IsSelected(rate.site)) {
        if (MayBeSelected(rate.site)) {
          unplaced_ += ValueOf(rule_.metric, rate, gpu_step_ms_);
        }
        continue;
      }
      Part part{"",   rate.site, rate.api, ValueOf(rule_.metric, rate, gpu_step_ms_),
                kind, "",        ""};
      if (part.change == "moved") part.moved_from = PlaceOf(change.a.site);
      part.allowed = ReasonFor(rate.site);
      if (part.allowed.empty()) {
        (part.change == "rare" ? rare_ : sum_) += part.value;
      }
      result_.parts.push_back(std::move(part));
    }
  }

  bool IsSelected(const v1::Site& site) const {
    const Selector& selector = rule_.selector;
    return (selector.file.empty() || IsFile(site.file(), selector.file)) &&
           (selector.line == 0 || selector.line == site.line());
  }

  // Its file or its line is not known.
  bool MayBeSelected(const v1::Site& site) const {
    const Selector& selector = rule_.selector;
    return site.file().empty() ||
           (site.line() == 0 && IsFile(site.file(), selector.file));
  }

  // Whether it makes a difference to count some of so much, too.
  bool Decides(double more) const {
    if (more <= 0) return false;
    if (rule_.op == Operator::kEqual || rule_.op == Operator::kUnequal) return true;
    return Holds(sum_, rule_.op, rule_.bound) !=
           Holds(sum_ + more, rule_.op, rule_.bound);
  }

  // One that is called more often than in the baseline, on a line that is not known,
  // may be two, of which one is new.
  void AddUnplaced(const std::vector<SyncChange>& changes) {
    for (const SyncChange& change : changes) {
      if (change.b.site.line() > 0 || !ReasonFor(change.b.site).empty()) continue;
      if (change.b.calls_per_step <= change.a.calls_per_step) continue;
      unplaced_ += ValueOf(rule_.metric, change.b, gpu_step_ms_);
    }
  }

  std::string ReasonFor(const v1::Site& site) const {
    for (const Allowance& allowance : allowances_) {
      if (Covers(allowance, site, rule_.metric.name)) return allowance.reason;
    }
    return "";
  }

  const Rule& rule_;
  const std::vector<Allowance>& allowances_;
  const double gpu_step_ms_;
  double sum_ = 0;
  double rare_ = 0;
  double unplaced_ = 0;
  Measured result_;
};

Measured Idle(const Rule& rule, const Comparison& comparison) {
  const bool percent = rule.metric.measure == Measure::kIdlePercent;
  const double step_ms = GpuStepMs(comparison.b);
  Measured result;
  result.value = 0;
  for (const compare::CauseChange& row : comparison.causes) {
    const std::string cause = CauseKey(row.cause);
    if (!rule.metric.part.empty() && rule.metric.part != cause) continue;
    const double value = percent ? Percent(row.ms.b, step_ms) : row.ms.b;
    *result.value += value;
    if (value > 0) result.parts.push_back({cause, {}, "", value, "", "", ""});
  }
  std::stable_sort(
      result.parts.begin(), result.parts.end(),
      [](const Part& one, const Part& other) { return one.value > other.value; });
  return result;
}

Measured Host(const Rule& rule, const Comparison& comparison) {
  Measured result;
  result.value = 0;
  for (const compare::HostChange& row : comparison.host) {
    if (row.what == rule.metric.part) result.value = row.ms.b;
  }
  return result;
}

Measured Memory(const Rule& rule, const Comparison& comparison) {
  Measured result;
  const bool peak = rule.metric.measure == Measure::kPeakMiB;
  // A run of which nothing is known takes no memory off the mean of the others.
  const bool of_all =
      std::all_of(comparison.b.begin(), comparison.b.end(), [&](const RunFacts& run) {
        return std::count(run.allocators.begin(), run.allocators.end(),
                          rule.metric.part) > 0;
      });
  for (const compare::MemoryChange& row : comparison.memory) {
    if (!of_all || row.allocator != rule.metric.part) continue;
    const double bytes = peak ? row.peak_bytes.b : row.reserved_bytes.b;
    if (peak || bytes > 0) result.value = bytes / kMiB;
  }
  if (!result.value) {
    result.why_not =
        absl::StrCat("nothing is known of the ", peak ? "memory" : "reserved memory",
                     " of the allocator ", rule.metric.part, " in this job");
  }
  return result;
}

Measured StepTime(const Rule& rule, const Comparison& comparison) {
  Measured result;
  if (!comparison.step) {
    result.why_not = "no steps were timed";
    return result;
  }
  const compare::StepTime& step = *comparison.step;
  const bool change = rule.metric.measure == Measure::kStepChange;
  if (!change) result.value = step.b_ms;
  if (!comparison.untimed.empty()) {
    result.why_not = absl::StrJoin(comparison.untimed, "; ");
    return result;
  }
  if (!change) return result;
  if (!step.known || !step.change) {
    result.why_not =
        "too few runs: one run a side proves nothing of times (two or more a side: "
        "lull check B1,B2,B3 --baseline A1,A2,A3)";
    return result;
  }
  result.value = step.change->percent;
  result.low = step.change->low_percent;
  result.high = step.change->high_percent;
  if (Holds(*result.low, rule.op, rule.bound) ==
      Holds(*result.high, rule.op, rule.bound)) {
    return result;
  }
  result.why_not = "too few runs: the bound lies within the 95 % interval";
  if (step.runs_needed) {
    absl::StrAppend(&result.why_not, "; about ", *step.runs_needed,
                    " runs a side show a change of ", step.asked_percent, " %");
  }
  return result;
}

}  // namespace

Measured MeasureFor(const Rule& rule, const Comparison& comparison,
                    const std::vector<Allowance>& allowances) {
  if (std::string why = WhyNotMeasured(rule, comparison); !why.empty()) {
    Measured none;
    none.why_not = std::move(why);
    return none;
  }
  switch (rule.metric.measure) {
    case Measure::kIdleMs:
    case Measure::kIdlePercent:
      return Idle(rule, comparison);
    case Measure::kHostMs:
      return Host(rule, comparison);
    case Measure::kStepMs:
    case Measure::kStepChange:
      return StepTime(rule, comparison);
    case Measure::kPeakMiB:
    case Measure::kReservedMiB:
      return Memory(rule, comparison);
    default:
      return SyncSum(rule, comparison, allowances).Result();
  }
}

}  // namespace lull::check
