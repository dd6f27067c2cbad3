#include <algorithm>
#include <array>
#include <string_view>

#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/base/status.h"
#include "daemon/query/hot.h"
#include "daemon/query/phases.h"
#include "daemon/query/steps.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using aggregate::Sampled;
using v1::PhasePartKind;

constexpr size_t kKinds = static_cast<size_t>(v1::PhasePartKind_MAX) + 1;

struct KnownCall {
  std::string_view folder;  // in the file's path; "" is any
  std::string_view file;    // its end
  std::string_view function;
  PhasePartKind kind;
};
constexpr KnownCall kCalls[] = {
    {"", "/torch/nn/modules/module.py", "to", v1::PHASE_PART_MODEL_TO_DEVICE},
    {"", "/torch/nn/modules/module.py", "cuda", v1::PHASE_PART_MODEL_TO_DEVICE},
    {"", "/torch/serialization.py", "save", v1::PHASE_PART_CHECKPOINT},
    {"", "/transformers/trainer.py", "evaluate", v1::PHASE_PART_EVALUATION},
    {"lightning", "/loops/evaluation_loop.py", "run", v1::PHASE_PART_EVALUATION},
};

// "Module.to" and "to": names are qualified from CPython 3.11 on.
bool Calls(const aggregate::Frame& frame, const KnownCall& call) {
  std::string_view function = frame.function;
  if (!function.ends_with(call.function) || !frame.file.ends_with(call.file) ||
      frame.file.find(call.folder) == std::string::npos) {
    return false;
  }
  function.remove_suffix(call.function.size());
  return function.empty() || function.ends_with('.');
}

// The first kind whose frame comes, from the outermost on: an import that evaluates is
// an import. nullopt: none.
std::optional<PhasePartKind> KindOfStack(Stacks& stacks,
                                         const std::vector<uint32_t>& frames) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const aggregate::Frame& at = stacks.Frame(*frame);
    if (stacks.IsImporting(*frame)) return v1::PHASE_PART_IMPORTS;
    for (const KnownCall& call : kCalls) {
      if (Calls(at, call)) return call.kind;
    }
  }
  return std::nullopt;
}

// Samples of main threads in one phase of all processes.
struct PhaseSums {
  uint64_t time_ns = 0;  // of the processes, exactly
  Sampled all;
  std::array<Sampled, kKinds> kinds;
};

struct Totals {
  PhaseSums setup;
  PhaseSums steady;
  uint64_t first_steps_ns = 0;
  uint64_t end_ns = 0;
  uint64_t ends = 0;       // processes whose end was seen
  uint64_t processes = 0;  // whose set-up is known
};

void AddSamples(const ProcessSums& sums, Stacks& stacks, PhaseSums* out) {
  sums.ForEach([&](const Series& series, const Cell& cell) {
    if (series.type != EventType::kHostSample || cell.count == 0 ||
        aggregate::RoleOf(series) != aggregate::SampleRole::kMain) {
      return;
    }
    const Sampled sampled = aggregate::SampledOf(cell);
    out->all += sampled;
    if (!aggregate::HasStack(aggregate::QualityOf(series))) return;
    auto kind = KindOfStack(stacks, stacks.Frames(series.python_stack));
    if (kind) out->kinds[static_cast<size_t>(*kind)] += sampled;
  });
}

absl::Status AddProcess(View& view, const storage::ProcessRow& process,
                        Totals* totals) {
  storage::StoreReader& reader = *view.reader;
  const storage::JobRow& job = view.job;
  const uint64_t end = EndOf(job, process);
  LULL_ASSIGN_OR_RETURN(auto steady, SteadySince(reader, job, process, end));
  if (!steady) return absl::OkStatus();
  ++totals->processes;
  LULL_ASSIGN_OR_RETURN(auto first,
                        reader.catalogue().FirstSteps(process.id, kWarmUpSteps));
  for (const storage::StepRow& step : first) {
    if (step.number > kWarmUpSteps || step.end_ns < step.start_ns) continue;
    totals->first_steps_ns += step.end_ns - step.start_ns;
  }
  LULL_ASSIGN_OR_RETURN(
      auto last, reader.catalogue().Steps(process.id, 0, aggregate::kForever, 1));
  uint64_t trained = aggregate::AfterStart(end, job.info.start_ns());
  if (!last.empty() && process.end_ns >= last.back().end_ns && process.end_ns != 0) {
    trained = aggregate::AfterStart(last.back().end_ns, job.info.start_ns());
    totals->end_ns += process.end_ns - last.back().end_ns;
    ++totals->ends;
  }
  const uint64_t begin =
      aggregate::AfterStart(process.info.start_ns(), job.info.start_ns());
  LULL_ASSIGN_OR_RETURN(ProcessSums setup,
                        LoadSums(reader, job, process, {0, *steady}));
  AddSamples(setup, *view.stacks, &totals->setup);
  totals->setup.time_ns += *steady - std::min(begin, *steady);
  if (trained <= *steady) return absl::OkStatus();
  LULL_ASSIGN_OR_RETURN(ProcessSums rest,
                        LoadSums(reader, job, process, {*steady, trained}));
  AddSamples(rest, *view.stacks, &totals->steady);
  totals->steady.time_ns += trained - *steady;
  return absl::OkStatus();
}

// Times are of one process, on average.
void FillSampled(const PhaseSums& sums, uint64_t processes, v1::Phase phase,
                 PhasePartKind kind, v1::Steps* reply) {
  const Sampled& part = sums.kinds[static_cast<size_t>(kind)];
  if (part.samples == 0 || !aggregate::IsEnough(sums.all)) return;
  v1::PhasePart* row = reply->add_phase_parts();
  row->set_phase(phase);
  row->set_kind(kind);
  row->set_samples(part.samples);
  SetShare(part, sums.all, row->mutable_share());
  // The first looks come after the first imports: what they missed is nobody's.
  const double whole = static_cast<double>(std::min(sums.time_ns, sums.all.time_ns)) /
                       static_cast<double>(processes);
  row->set_time_ns(static_cast<uint64_t>(whole * row->share().percent() / 100));
}

void FillExact(uint64_t time_ns, uint64_t processes, v1::Phase phase,
               PhasePartKind kind, v1::Steps* reply) {
  if (time_ns == 0 || processes == 0) return;
  v1::PhasePart* row = reply->add_phase_parts();
  row->set_phase(phase);
  row->set_kind(kind);
  row->set_time_ns(time_ns / processes);
}

}  // namespace

absl::Status FillPhaseParts(View& view, v1::Steps* reply) {
  Totals totals;
  for (const ProcessSums& sums : view.processes) {
    LULL_RETURN_IF_ERROR(AddProcess(view, sums.process, &totals));
  }
  if (totals.processes == 0) return absl::OkStatus();
  const uint64_t count = totals.processes;
  using v1::PHASE_SETUP, v1::PHASE_STEADY;
  reply->set_setup_ns(totals.setup.time_ns / count);
  FillSampled(totals.setup, count, PHASE_SETUP, v1::PHASE_PART_IMPORTS, reply);
  FillSampled(totals.setup, count, PHASE_SETUP, v1::PHASE_PART_MODEL_TO_DEVICE, reply);
  FillExact(totals.first_steps_ns, count, PHASE_SETUP, v1::PHASE_PART_FIRST_STEPS,
            reply);
  FillSampled(totals.steady, count, PHASE_STEADY, v1::PHASE_PART_EVALUATION, reply);
  FillSampled(totals.steady, count, PHASE_STEADY, v1::PHASE_PART_CHECKPOINT, reply);
  FillExact(totals.end_ns, totals.ends, PHASE_STEADY, v1::PHASE_PART_END, reply);
  return view.stacks->status();
}

}  // namespace lull::query
