#include "daemon/check/measure.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/check/why_not.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/format.h"

namespace lull::check {
namespace {

using compare::Comparison;
using compare::RunFacts;
using compare::SyncChange;
using compare::SyncRate;

constexpr double kMiB = 1 << 20;

// What a rule looks at: all processes together, or one.
struct View {
  std::string of;  // "rank 0"
  const compare::SyncChanges* syncs;
  const std::vector<compare::CauseChange>* causes;
  const std::vector<compare::HostChange>* host;
  double gpu_step_ms;
  double step_ms;
};

// A step of the runs, as their device times are told. 0: not all were traced.
double GpuStepMs(const std::vector<double>& runs) {
  double sum = 0;
  for (double step_ms : runs) {
    if (step_ms <= 0) return 0;
    sum += step_ms;
  }
  return runs.empty() ? 0 : sum / D(runs.size());
}

// Each process by itself where that is known: a mean over processes hides one that
// differs.
std::vector<View> ViewsOf(const Comparison& comparison) {
  std::vector<View> views;
  for (const compare::OfProcess& one : comparison.each_process) {
    views.push_back({one.rank >= 0 ? absl::StrCat("rank ", one.rank)
                                   : absl::StrCat("process ", one.pid),
                     &one.syncs, &one.causes, &one.host, GpuStepMs(one.gpu_step_ms),
                     one.step_ms});
  }
  if (!views.empty()) return views;
  std::vector<double> step_ms;
  for (const RunFacts& run : comparison.b) step_ms.push_back(run.gpu_step_ms);
  return {{"", &comparison.syncs, &comparison.causes, &comparison.host,
           GpuStepMs(step_ms), comparison.step ? comparison.step->b_ms : 0}};
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
  SyncSum(const Rule& rule, const View& view, const std::vector<Allowance>& allowances)
      : rule_(rule), allowances_(allowances), gpu_step_ms_(view.gpu_step_ms) {
    const compare::SyncChanges& syncs = *view.syncs;
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

Measured Idle(const Rule& rule, const View& view) {
  const bool percent = rule.metric.measure == Measure::kIdlePercent;
  const double step_ms = view.gpu_step_ms;
  Measured result;
  result.value = 0;
  for (const compare::CauseChange& row : *view.causes) {
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

Measured Host(const Rule& rule, const View& view) {
  Measured result;
  result.value = 0;
  for (const compare::HostChange& row : *view.host) {
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

// Why times of steps prove nothing; "" if they do.
std::string WhyNotTimed(const Comparison& comparison) {
  return comparison.step ? absl::StrJoin(comparison.untimed, "; ")
                         : "no steps were timed";
}

Measured StepMs(const View& view, const Comparison& comparison) {
  Measured result;
  if (comparison.step) result.value = view.step_ms;
  result.why_not = WhyNotTimed(comparison);
  return result;
}

// All processes together: it is runs that are compared.
Measured StepChange(const Rule& rule, const Comparison& comparison) {
  Measured result;
  result.why_not = WhyNotTimed(comparison);
  if (!result.why_not.empty()) return result;
  const compare::StepTime& step = *comparison.step;
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

Measured MeasureView(const Rule& rule, const View& view, const Comparison& comparison,
                     const Leave& leave) {
  switch (rule.metric.measure) {
    case Measure::kStepMs:
      return StepMs(view, comparison);
    case Measure::kIdleMs:
    case Measure::kIdlePercent:
      return Idle(rule, view);
    case Measure::kHostMs:
      return Host(rule, view);
    default:
      return SyncSum(rule, view, leave.allowances).Result();
  }
}

// 2: the rule holds; 1: nobody can tell; 0: it does not hold.
int Badness(const Rule& rule, const Measured& measured) {
  if (!measured.why_not.empty() || !measured.value) return 1;
  return Holds(*measured.value, rule.op, rule.bound) ? 2 : 0;
}

bool IsWorse(const Rule& rule, const Measured& one, const Measured& other) {
  const int badness = Badness(rule, one), of_other = Badness(rule, other);
  if (badness != of_other) return badness > of_other;
  const double value = one.value.value_or(0), than = other.value.value_or(0);
  if (value == than) return one.parts.size() > other.parts.size();
  const bool least = rule.op == Operator::kBelow || rule.op == Operator::kAtMost;
  return least ? value < than : value > than;
}

// From the process that is furthest beyond the bound.
Measured MeasureWorst(const Rule& rule, const Comparison& comparison,
                      const Leave& leave) {
  Measured worst;
  bool first = true;
  for (const View& view : ViewsOf(comparison)) {
    Measured measured = MeasureView(rule, view, comparison, leave);
    measured.of = view.of;
    if (first || IsWorse(rule, measured, worst)) worst = std::move(measured);
    first = false;
  }
  return worst;
}

}  // namespace

Measured MeasureFor(const Rule& rule, const Comparison& comparison,
                    const Leave& leave) {
  if (std::string why = WhyNotMeasured(rule, comparison, leave); !why.empty()) {
    Measured none;
    none.why_not = std::move(why);
    return none;
  }
  switch (rule.metric.measure) {
    case Measure::kStepChange:
      return StepChange(rule, comparison);
    case Measure::kPeakMiB:
    case Measure::kReservedMiB:
      return Memory(rule, comparison);
    default:
      return MeasureWorst(rule, comparison, leave);
  }
}

}  // namespace lull::check
