#include "daemon/compare/steady_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "daemon/compare/statistics.h"

namespace lull::compare {
namespace {

constexpr size_t kLeastDropped = 10;
constexpr size_t kLeastWindow = 5;
constexpr double kMedianDeviations = 2;  // median deviations of the second half
constexpr double kLeastApart = 0.02;     // and this of its median

std::vector<double> Durations(const std::vector<Step>& steps, size_t begin,
                              size_t end) {
  std::vector<double> durations;
  for (size_t i = begin; i < end; ++i) {
    durations.push_back(static_cast<double>(steps[i].duration_ns));
  }
  return durations;
}

// How many steps are no steady ones; at most half of them. `settled` is false if all of
// the first half differ.
size_t WarmUp(const std::vector<Step>& steps, bool* settled) {
  const size_t n = steps.size(), half = n / 2;
  const std::vector<double> later = Durations(steps, half, n);
  const double median = Median(later);
  std::vector<double> away;
  for (double duration : later) away.push_back(std::abs(duration - median));
  const double bound =
      std::max(kMedianDeviations * Median(std::move(away)), kLeastApart * median);
  const size_t window = std::max(kLeastWindow, n / 50);
  const size_t least = std::max(std::min(kLeastDropped, n / 4), n / 20);
  *settled = false;
  for (size_t first = least; first <= half; ++first) {
    const double here = Median(Durations(steps, first, std::min(n, first + window)));
    if (std::abs(here - median) > bound) continue;
    *settled = true;
    return first;
  }
  return half;
}

void Keep(ProcessSteps& process, uint64_t first, uint64_t last) {
  const uint64_t erased = std::erase_if(process.steps, [&](const Step& step) {
    return step.number < first || step.number > last;
  });
  process.dropped += erased;
  process.left_out += erased;
}

bool HasEnough(const Run& run, uint64_t first, uint64_t last) {
  return std::all_of(
      run.processes.begin(), run.processes.end(), [&](const ProcessSteps& process) {
        auto count = std::count_if(process.steps.begin(), process.steps.end(),
                                   [&](const Step& step) {
                                     return first <= step.number && step.number <= last;
                                   });
        return static_cast<size_t>(count) >= kLeastSteps;
      });
}

}  // namespace

std::vector<ProcessSteps> SteadySteps(const v1::ReportReply& whole) {
  std::map<std::pair<int32_t, uint32_t>, ProcessSteps> by_rank;
  if (whole.details().empty()) return {};
  for (const v1::StepRow& row : whole.details(0).steps().steps()) {
    if (row.duration_ns() == 0) continue;  // nobody knows when the first one began
    ProcessSteps& process = by_rank[{row.rank(), row.pid()}];
    process.pid = row.pid();
    process.rank = row.rank();
    process.steps.push_back(
        {row.number(), row.start_ns(), row.duration_ns(), row.traced()});
  }
  std::vector<ProcessSteps> result;
  for (auto& [key, process] : by_rank) {
    std::sort(process.steps.begin(), process.steps.end(),
              [](const Step& a, const Step& b) { return a.start_ns < b.start_ns; });
    if (process.steps.size() < kLeastSteps) continue;
    process.dropped = WarmUp(process.steps, &process.steady);
    process.steps.erase(
        process.steps.begin(),
        process.steps.begin() + static_cast<ptrdiff_t>(process.dropped));
    if (process.steps.size() >= kLeastSteps) result.push_back(std::move(process));
  }
  return result;
}

namespace {

// The steps that all of these have.
struct Span {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;

  void Narrow(const Run& run) {
    for (const ProcessSteps& process : run.processes) {
      first = std::max(first, process.steps.front().number);
      last = std::min(last, process.steps.back().number);
    }
  }
};

void FillProcesses(Run* run, ChosenSteps* chosen) {
  run->processes = SteadySteps(run->whole);
  if (run->processes.size() > kMostProcesses) {
    run->processes_left_out = run->processes.size() - kMostProcesses;
    run->processes.resize(kMostProcesses);
  }
  chosen->processes_left_out =
      std::max(chosen->processes_left_out, run->processes_left_out);
}

}  // namespace

ChosenSteps ChooseStepsLike(const std::vector<Run>& asked,
                            const std::vector<Run*>& runs) {
  ChosenSteps chosen;
  Span theirs;
  for (const Run& run : asked) {
    theirs.Narrow(run);
    chosen.processes_left_out =
        std::max(chosen.processes_left_out, run.processes_left_out);
  }
  Span all = theirs;
  for (Run* run : runs) {
    FillProcesses(run, &chosen);
    all.Narrow(*run);
  }
  auto are_those = [&](const Run& run) {
    return std::all_of(run.processes.begin(), run.processes.end(),
                       [&](const auto& own) {
                         return own.steps.front().number == theirs.first &&
                                own.steps.back().number == theirs.last;
                       });
  };
  chosen.same_numbers = all.first == theirs.first && all.last == theirs.last &&
                        std::all_of(asked.begin(), asked.end(), are_those) &&
                        std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
                          return HasEnough(*run, all.first, all.last);
                        });
  if (!chosen.same_numbers) return chosen;
  for (Run* run : runs) {
    for (ProcessSteps& process : run->processes) Keep(process, all.first, all.last);
  }
  return chosen;
}

ChosenSteps ChooseOwnSteps(const std::vector<Run*>& runs) {
  ChosenSteps all;
  for (Run* run : runs) {
    const ChosenSteps chosen = ChooseSteps({run});
    all.same_numbers = all.same_numbers && chosen.same_numbers;
    all.processes_left_out =
        std::max(all.processes_left_out, chosen.processes_left_out);
  }
  return all;
}

ChosenSteps ChooseSteps(const std::vector<Run*>& runs) {
  ChosenSteps chosen;
  Span span;
  for (Run* run : runs) {
    FillProcesses(run, &chosen);
    span.Narrow(*run);
  }

  chosen.same_numbers = std::all_of(runs.begin(), runs.end(), [&](const Run* run) {
    return HasEnough(*run, span.first, span.last);
  });
  for (Run* run : runs) {
    for (ProcessSteps& process : run->processes) {
      if (chosen.same_numbers) Keep(process, span.first, span.last);
    }
  }
  return chosen;
}

}  // namespace lull::compare
