#include "daemon/check/why_not.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/import_words.h"
#include "daemon/compare/run.h"
#include "daemon/compare/steady_steps.h"

namespace lull::check {
namespace {

using compare::Comparison;
using compare::RunFacts;

// Why nobody can tell it of an imported trace; "" if the trace has it.
std::string WhyNotImported(const Metric& metric, const v1::ImportInfo& told) {
  static constexpr const char* kWaits[] = {"host_wait", "lock",  "io",
                                           "comm",      "sleep", "process"};
  const std::string& part = metric.part;
  auto is_missing = [&told](absl::string_view sentence) {
    return std::find(told.not_applied().begin(), told.not_applied().end(), sentence) !=
           told.not_applied().end();
  };
  if (part == "gil" || part == "gil_wait") return kImportHasNoGilWaits;
  if (part == "run_queue") return kImportHasNoRunQueue;
  if (part == "gc") return is_missing(kImportHasNoGc) ? kImportHasNoGc : "";
  if (part == "data") return is_missing(kImportHasNoData) ? kImportHasNoData : "";
  if (std::find(std::begin(kWaits), std::end(kWaits), part) != std::end(kWaits)) {
    return is_missing(kImportHasNoWaits)
               ? kImportHasNoWaits
               : "an imported trace has only those waits that frames of Python tell";
  }
  return "";
}

bool HasFailed(const v1::Job& job) {
  return job.exit_status_known() && job.exit_status() != 0;
}

// Why what is known of a run is not what a metric is made of; "" if it is.
std::string WhyNotOf(const Metric& metric, const Leave& leave, const RunFacts& run) {
  if (!run.job.ended() && !run.job.end_unseen()) return " is not over yet";
  if (HasFailed(run.job) && !leave.failed_job) {
    return absl::StrCat(" ended with exit status ", run.job.exit_status(),
                        ", and may not have done all (--allow-failed-job judges it)");
  }
  if (run.job.has_imported()) {
    const std::string why = WhyNotImported(metric, run.job.imported());
    if (!why.empty()) return absl::StrCat(" cannot tell it: ", why);
  }
  if (metric.of_memory() && !run.recorded_whole) {
    return " was not recorded from its start to its end: what was in use before is not "
           "known";
  }
  if (metric.of_memory() && run.steps_sampled &&
      !compare::IsRecordedInAllSteps(metric.part)) {
    return ": its steps were sampled to hold the overhead budget, and what tensors "
           "took in the others is not known (--sample-steps=false records all)";
  }
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

}  // namespace

std::string WhyNotMeasured(const Rule& rule, const Comparison& comparison,
                           const Leave& leave) {
  std::vector<std::string> why = comparison.reasons;
  for (const auto* side : {&comparison.a, &comparison.b}) {
    for (const RunFacts& run : *side) {
      std::string sentence = WhyNotOf(rule.metric, leave, run);
      if (sentence.empty()) continue;
      sentence = absl::StrCat(compare::NameOf(run.job), sentence);
      if (std::find(why.begin(), why.end(), sentence) == why.end()) {
        why.push_back(std::move(sentence));
      }
    }
  }
  return absl::StrJoin(why, "; ");
}

}  // namespace lull::check
