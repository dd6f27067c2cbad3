// What a comparison of two sides, A and B, of one or more runs each, found. "Per step"
// means: of one process, in a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/compare/changes.h"
#include "daemon/compare/statistics.h"
#include "query.pb.h"

namespace lull::compare {

enum class Verdict {
  kFaster,        // B's steps are shorter
  kSlower,        // or longer
  kSyncsChanged,  // no difference of times is shown, but what B waits for differs
  kNoDifference,  // that these runs can show
  kCannotJudge,   // `reasons` says why
};

struct StepTime {
  // Medians of runs, their geometric mean, so that `change` is that from a to b.
  double a_ms = 0;
  double b_ms = 0;
  double mean_a_ms = 0;
  double mean_b_ms = 0;
  // With one run on a side its interval is of parts of the runs: it knows nothing of how
  // runs differ, and `known` is false.
  std::optional<Change> change;
  bool known = false;
  std::optional<double> spread_percent;  // of runs of one side: standard deviation
  double asked_percent = 0;              // the difference that the user asks for
  std::optional<int> runs_needed;        // a side, to show that one
};

struct RunFacts {
  v1::Job job;
  uint64_t steps = 0;    // compared, of all processes
  uint64_t dropped = 0;  // not compared
  size_t processes = 0;
  double step_ms = 0;  // median; 0 of no steps
  // The step of which device times per step are shares. 0: of one of its
  // processes there is no GPU truth for the steps, or for less than one.
  double gpu_step_ms = 0;
  std::string gpu_missing;   // why, if the job says so
  bool gpu_complete = true;  // no GPU records are missing
  bool gpu_calls = false;  // every process that made steps has sync points or launches
  // What is known of it is not of all of it.
  size_t processes_left_out = 0;         // they made steps, and were not asked about
  std::vector<int> ranks_without_steps;  // or with too few to be compared
  bool collections_seen = true;          // false: the hook of a process failed
  bool loads_seen = true;  // calls of a DataLoader; false: of an unknown PyTorch
  std::vector<std::string> allocators;  // of whose memory something is known
  // From its start to its end. False: what was in use before nobody knows.
  bool recorded_whole = true;  // from its start to its end
  bool steps_sampled = false;  // to hold the overhead budget
};

struct Comparison {
  std::vector<RunFacts> a;
  std::vector<RunFacts> b;
  Verdict verdict = Verdict::kCannotJudge;
  std::vector<std::string> reasons;   // nothing may be concluded
  std::vector<std::string> warnings;  // to be known by who reads it
  std::vector<std::string> untimed;   // of the warnings: times prove nothing
  std::optional<StepTime> step;       // absent: no steps
  bool traced_steps = false;          // the times are of steps in traced time
  // Everything below is of steps, and empty without any.
  SyncChanges syncs;
  std::vector<CauseChange> causes;  // empty without GPU truth on both sides
  std::vector<KernelChange> kernels;
  std::vector<HostChange> host;
  std::vector<FunctionChange> functions;
  std::vector<MemoryChange> memory;
  // Those of B; empty if its runs have one, or another number of them each, or nobody
  // asked (Question.each_process).
  std::vector<OfProcess> each_process;
};

}  // namespace lull::compare
