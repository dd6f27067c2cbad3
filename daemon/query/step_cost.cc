#include "daemon/steps/step_cost.h"

#include <algorithm>
#include <optional>

#include "daemon/base/status.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

// Ranks of one job step together: that none of so many can be judged says that it
// cannot be told.
constexpr size_t kMostProcesses = 8;
// That so few steps were recorded before they were sampled is not worth a word.
constexpr size_t kMostBeforeSampling = 64;

steps::TracingIs StateOf(const storage::TracingRow& row) {
  switch (row.state) {
    case v1::TRACING_STATE_WARM_UP:
    case v1::TRACING_STATE_ACTIVE:
      return steps::TracingIs::kOn;
    case v1::TRACING_STATE_YIELDED:
      return steps::TracingIs::kAnothers;
    default:
      return steps::TracingIs::kOff;
  }
}

absl::StatusOr<steps::StepCost> CostOfProcess(storage::StoreReader& reader,
                                              const ProcessSums& sums) {
  LULL_ASSIGN_OR_RETURN(
      auto rows, reader.catalogue().Steps(sums.process.id, 0, aggregate::kForever, 0));
  const uint64_t known_until =
      sums.tracing.empty() ? aggregate::kForever : TracingKnownUntil(sums.tracing);
  std::vector<steps::TimedStep> timed;
  for (const storage::StepRow& row : rows) {
    if (row.start_ns == row.end_ns || row.end_ns > known_until) continue;
    timed.push_back({row.number, row.start_ns, row.end_ns, row.rested_ns});
  }
  std::vector<steps::TracingChange> changes;
  for (const storage::TracingRow& row : sums.tracing) {
    changes.push_back({row.start_ns, StateOf(row)});
  }
  return steps::CostOf(timed, changes, sums.process.counters.first_sampled_step());
}

void Fill(const std::optional<steps::Estimate>& estimate,
          v1::Estimate* (v1::StepCost::*mutable_field)(), v1::StepCost* out) {
  if (!estimate) return;
  v1::Estimate* told = (out->*mutable_field)();
  told->set_percent(100 * estimate->share);
  told->set_low_percent(100 * estimate->low);
  told->set_high_percent(100 * estimate->high);
}

v1::StepCost Told(const ProcessSums& sums, const steps::StepCost& cost) {
  v1::StepCost out;
  out.set_pid(sums.process.info.pid());
  out.set_rank(sums.process.info.rank());
  out.set_windows(cost.windows);
  out.set_traced_steps(cost.traced_steps);
  out.set_untraced_steps(cost.untraced_steps);
  using v1::StepCost;
  Fill(cost.traced_longer, &StepCost::mutable_traced_longer, &out);
  Fill(cost.paid, &StepCost::mutable_paid, &out);
  Fill(cost.between_longer, &StepCost::mutable_between_longer, &out);
  out.set_control_steps(cost.control_steps);
  out.set_rested_steps(cost.rested_steps);
  out.set_recorded_steps(cost.recorded_steps);
  Fill(cost.recorded_longer, &StepCost::mutable_recorded_longer, &out);
  Fill(cost.recording_paid, &StepCost::mutable_recording_paid, &out);
  return out;
}

}  // namespace

absl::Status FillStepCost(storage::StoreReader& reader, const storage::JobRow& job,
                          const std::vector<ProcessSums>& processes,
                          v1::Overhead* out) {
  const uint32_t control_one_in = job.info.settings().control_steps();
  const auto is_sampled = [&](const ProcessSums& sums) {
    return AreStepsSampled(job, {sums.process});
  };
  std::vector<const ProcessSums*> those;
  for (const ProcessSums& sums : processes) {
    const bool may_rest = control_one_in != 0 || is_sampled(sums);
    if (may_rest || !sums.tracing.empty()) those.push_back(&sums);
  }
  std::stable_partition(those.begin(), those.end(),
                        [&](const ProcessSums* sums) { return is_sampled(*sums); });
  if (those.size() > kMostProcesses) those.resize(kMostProcesses);
  for (const ProcessSums* sums : those) {
    LULL_ASSIGN_OR_RETURN(steps::StepCost cost, CostOfProcess(reader, *sums));
    if (cost.traced_steps == 0 && cost.control_steps == 0) continue;
    const bool is_told = cost.paid || cost.recorded_longer;
    if (is_told || !out->has_step_cost()) {
      *out->mutable_step_cost() = Told(*sums, cost);
      out->mutable_step_cost()->set_sampled(is_sampled(*sums));
      const uint64_t from = sums->process.counters.first_sampled_step();
      if (from > kMostBeforeSampling) {
        out->mutable_step_cost()->set_sampled_from_step(from);
      }
    }
    if (is_told) break;
  }
  const bool sampled = !those.empty() && is_sampled(*those.front());
  if (control_one_in != 0 || sampled) {
    if (!out->has_step_cost()) out->mutable_step_cost()->set_sampled(sampled);
    out->mutable_step_cost()->set_control_one_in(control_one_in);
  }
  return absl::OkStatus();
}

}  // namespace lull::query
