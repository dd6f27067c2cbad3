#include "daemon/compare/compare.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/compare/each_process.h"
#include "daemon/compare/footing.h"
#include "daemon/compare/rates.h"
#include "daemon/compare/run_facts.h"
#include "daemon/compare/sync_changes.h"
#include "daemon/words/format.h"

namespace lull::compare {
namespace {

// A run alone is cut into so many parts. They resemble each other less than steps do.
constexpr size_t kParts = 10;

// Of the steps that are timed.
std::vector<double> TimesOf(const Run& run, bool traced, size_t part = 0,
                            size_t parts = 1) {
  std::vector<double> times;
  for (const ProcessSteps& process : run.processes) {
    std::vector<double> own;
    for (const Step& step : process.steps) {
      if (step.traced == traced) own.push_back(D(step.duration_ns) / 1e6);
    }
    const size_t begin = part * own.size() / parts;
    const size_t end = (part + 1) * own.size() / parts;
    times.insert(times.end(), own.begin() + static_cast<ptrdiff_t>(begin),
                 own.begin() + static_cast<ptrdiff_t>(end));
  }
  return times;
}

// In every process.
bool EnoughTimes(const Runs& runs, bool traced) {
  return std::all_of(runs.begin(), runs.end(), [traced](const Run& run) {
    return std::all_of(
        run.processes.begin(), run.processes.end(), [traced](const ProcessSteps& own) {
          const auto count =
              std::count_if(own.steps.begin(), own.steps.end(),
                            [&](const Step& step) { return step.traced == traced; });
          return static_cast<size_t>(count) >= kLeastSteps;
        });
  });
}

bool EnoughTimes(const Runs& a, const Runs& b, bool traced) {
  return EnoughTimes(a, traced) && EnoughTimes(b, traced);
}

std::vector<double> Medians(const Runs& runs, bool traced) {
  std::vector<double> medians;
  for (const Run& run : runs) medians.push_back(Median(TimesOf(run, traced)));
  return medians;
}

std::vector<double> Means(const Runs& runs, bool traced) {
  std::vector<double> means;
  for (const Run& run : runs) means.push_back(Mean(TimesOf(run, traced)));
  return means;
}

std::vector<double> PartMedians(const Runs& runs, bool traced) {
  std::vector<double> medians;
  for (const Run& run : runs) {
    for (size_t part = 0; part < kParts; ++part) {
      medians.push_back(Median(TimesOf(run, traced, part, kParts)));
    }
  }
  return medians;
}

// The same interval around another ratio: that of parts around that of the runs.
Change MovedTo(double ratio, Change change) {
  const double by = ratio / (1 + change.percent / 100);
  for (double* percent : {&change.percent, &change.low_percent, &change.high_percent}) {
    *percent = 100 * ((1 + *percent / 100) * by - 1);
  }
  return change;
}

// What StepTime.b_ms is of all processes, for each one by itself.
void FillStepTimes(const Runs& b, bool traced, std::vector<OfProcess>* each) {
  for (size_t process = 0; process < each->size(); ++process) {
    std::vector<double> medians;
    for (const Run& run : b) {
      Run one;
      one.processes = {run.processes[process]};
      medians.push_back(Median(TimesOf(one, traced)));
    }
    (*each)[process].step_ms = GeometricMean(medians);
  }
}

StepTime CompareTimes(const Runs& a, const Runs& b, bool traced, double asked) {
  StepTime time;
  const std::vector<double> of_a = Medians(a, traced), of_b = Medians(b, traced);
  time.mean_a_ms = Mean(Means(a, traced));
  time.mean_b_ms = Mean(Means(b, traced));
  time.asked_percent = asked;
  time.known = a.size() >= 2 && b.size() >= 2;
  time.a_ms = GeometricMean(of_a);
  time.b_ms = GeometricMean(of_b);
  time.change = time.known
                    ? ChangeOf(of_a, of_b)
                    : MovedTo(time.b_ms / time.a_ms,
                              ChangeOf(PartMedians(a, traced), PartMedians(b, traced)));
  if (auto spread = SpreadOf(of_a, of_b)) {
    time.spread_percent = 100 * *spread;
    time.runs_needed = RunsNeeded(*spread, asked);
  }
  return time;
}

std::vector<RunFacts> FactsOf(const Runs& runs, bool traced) {
  std::vector<RunFacts> facts;
  for (const Run& run : runs) {
    facts.push_back(FactsOf(run));
    facts.back().step_ms = Median(TimesOf(run, traced));
  }
  return facts;
}

// Nobody knows what a run that was armed late had in use before: what was seen is no
// peak of it.
bool RecordedWhole(Comparison* out) {
  bool whole = true;
  for (const auto* side : {&out->a, &out->b}) {
    for (const RunFacts& run : *side) {
      if (run.recorded_whole) continue;
      whole = false;
      out->warnings.push_back(
          absl::StrCat("memory cannot be told: ", NameOf(run.job),
                       " was not recorded from its start to its end"));
    }
  }
  return whole;
}

// Calls for device memory are recorded in every step, tensors are not.
void LeaveOutTensorsOfSampled(Comparison* out) {
  for (const auto* side : {&out->a, &out->b}) {
    for (const RunFacts& run : *side) {
      if (!run.steps_sampled) continue;
      std::erase_if(out->memory, [](const MemoryChange& row) {
        return !IsRecordedInAllSteps(row.allocator);
      });
      out->warnings.push_back(
          absl::StrCat("memory of tensors cannot be told: steps of ", NameOf(run.job),
                       " were sampled, --sample-steps=false records all"));
    }
  }
}

bool HaveSteps(const Runs& runs) {
  return std::none_of(runs.begin(), runs.end(),
                      [](const Run& run) { return run.processes.empty(); });
}

void WarnOfSteps(const Runs& a, const Runs& b, const Question& question,
                 Comparison* out) {
  if (!question.chosen.same_numbers) {
    out->warnings.push_back(
        "the runs have too few steps of the same numbers: other steps are compared");
  }
  if (question.chosen.processes_left_out > 0) {
    out->warnings.push_back(absl::StrCat("only the first ", kMostProcesses,
                                         " processes of each run are compared"));
  }
  if (question.warn_of_few_runs && (a.size() < 2 || b.size() < 2)) {
    out->warnings.push_back(
        "one run a side cannot tell how runs of one program differ: counts are exact, "
        "times prove nothing (give each side three runs or more: lull diff A1,A2,A3 "
        "B1,B2,B3)");
  }
}

// Both sides said the same.
void SayOnce(std::vector<std::string>* sentences) {
  std::vector<std::string> once;
  for (std::string& sentence : *sentences) {
    if (std::find(once.begin(), once.end(), sentence) == once.end()) {
      once.push_back(std::move(sentence));
    }
  }
  *sentences = std::move(once);
}

Verdict VerdictOf(const Comparison& comparison) {
  if (!comparison.reasons.empty() || !comparison.step) return Verdict::kCannotJudge;
  const StepTime& step = *comparison.step;
  if (step.known && step.change) {
    if (step.change->high_percent < 0) return Verdict::kFaster;
    if (step.change->low_percent > 0) return Verdict::kSlower;
  }
  const SyncChanges& syncs = comparison.syncs;
  const bool same = syncs.gone.empty() && syncs.came.empty() && syncs.changed.empty();
  return same ? Verdict::kNoDifference : Verdict::kSyncsChanged;
}

}  // namespace

Comparison Compare(const Runs& a, const Runs& b, const Question& question) {
  Comparison out;
  Footing footing = FootingOf(a, b);
  out.reasons = std::move(footing.reasons);
  out.warnings = std::move(footing.warnings);
  out.warnings.insert(out.warnings.end(), footing.untimed.begin(),
                      footing.untimed.end());
  out.untimed = std::move(footing.untimed);
  // Windows of tracing make steps longer: those between them are timed where they can
  // be.
  const bool untraced = EnoughTimes(a, b, /*traced=*/false);
  const bool timed = untraced || EnoughTimes(a, b, /*traced=*/true);
  out.traced_steps = !untraced;
  out.a = FactsOf(a, out.traced_steps);
  out.b = FactsOf(b, out.traced_steps);
  if (RecordedWhole(&out)) out.memory = CompareMemory(a, b);
  LeaveOutTensorsOfSampled(&out);
  if (!HaveSteps(a) || !HaveSteps(b)) return out;
  WarnOfSteps(a, b, question, &out);
  if (timed) {
    out.step = CompareTimes(a, b, out.traced_steps, question.difference_percent);
    if (!out.untimed.empty()) out.step->known = false;
  } else {
    out.reasons.push_back(
        "the runs have no steps of one kind: in some they were traced, in others not");
  }
  out.syncs = CompareSyncs(a, b);
  out.causes = CompareCauses(a, b);
  out.kernels = CompareKernels(a, b);
  out.host = CompareHost(a, b);
  out.functions = CompareFunctions(a, b);
  if (question.each_process) out.each_process = CompareEachProcess(a, b);
  if (timed) FillStepTimes(b, out.traced_steps, &out.each_process);
  out.verdict = VerdictOf(out);
  return out;
}

Comparison MeasureAlone(const Runs& runs, const ChosenSteps& chosen) {
  Question question;
  question.chosen = chosen;
  question.warn_of_few_runs = false;
  question.each_process = true;
  Comparison measured = Compare(runs, runs, question);
  SayOnce(&measured.reasons);
  SayOnce(&measured.warnings);
  SayOnce(&measured.untimed);
  return measured;
}

}  // namespace lull::compare
