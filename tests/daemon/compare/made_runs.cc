#include "tests/daemon/compare/made_runs.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace lull::testing {
namespace {

uint64_t CallsIn(const MadeSync& sync, const compare::ProcessSteps& process,
                 size_t begin, size_t end) {
  uint64_t calls = 0;
  if (sync.rank >= 0 && sync.rank != process.rank) return 0;
  for (size_t i = begin; i < end; ++i) {
    if (process.steps[i].number < sync.since) continue;
    if (sync.every > 0 && process.steps[i].number % sync.every == 0) {
      calls += static_cast<uint64_t>(sync.calls);
    }
  }
  return calls;
}

void AddSyncs(const MadeRun& made, const compare::ProcessSteps& process, size_t begin,
              size_t end, v1::Syncs* out) {
  for (const MadeSync& sync : made.syncs) {
    const uint64_t calls = CallsIn(sync, process, begin, end);
    if (calls == 0) continue;
    v1::SyncPoint* row = out->add_sync_points();
    row->set_api(sync.api);
    row->set_calls(calls);
    row->set_blocked_ns(calls * 1'000'000);
    row->set_wasted_ns(made.traced ? calls * 500'000 : 0);
    row->mutable_site()->set_file(sync.file);
    row->mutable_site()->set_line(sync.line);
    row->mutable_site()->set_function(sync.function);
    out->set_total_blocked_ns(out->total_blocked_ns() + row->blocked_ns());
    out->set_total_calls(out->total_calls() + calls);
  }
}

}  // namespace

double Normal::operator()() {
  auto uniform = [this] {
    return (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0;
  };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * uniform());
}

compare::Run MakeWhole(const MadeRun& made, Normal& normal) {
  compare::Run run;
  v1::Job* job = run.whole.mutable_job();
  job->set_id(absl::StrCat(made.name, "00000000"));
  job->set_name(made.name);
  job->set_host("here");
  job->set_ended(true);
  job->set_exit_status_known(true);
  job->set_exit_status(made.exit_status);
  job->set_start_realtime_ns(made.start_realtime_ns);
  run.whole.mutable_losses()->set_events_committed(1000);
  run.whole.mutable_losses()->set_events_stored(1000);
  if (made.traced) {
    run.whole.mutable_gpu()->set_mode(v1::GPU_MODE_CONTINUOUS);
    run.whole.add_devices()->set_name("GPU");
  }
  v1::Steps* steps = run.whole.add_details()->mutable_steps();
  steps->set_source("optimizer");
  const double of_run = made.step_ms * std::exp(made.run_spread * normal());
  for (size_t process = 0; process < made.processes; ++process) {
    v1::ProcessRow* facts = run.whole.add_processes();
    facts->set_pid(static_cast<uint32_t>(100 + process));
    facts->set_rank(made.processes > 1 ? static_cast<int32_t>(process) : -1);
    facts->set_gpu(made.gpu);
    facts->set_gc_hook(v1::GC_HOOK_STATE_ON);
    uint64_t now_ns = 1'000'000'000;
    double noise = normal();
    const auto slower = made.slower.find(process);
    const double times = slower == made.slower.end() ? 1 : slower->second;
    for (size_t i = 0; i < made.steps; ++i) {
      noise = made.likeness * noise +
              std::sqrt(1 - made.likeness * made.likeness) * normal();
      v1::StepRow* row = steps->add_steps();
      row->set_pid(static_cast<uint32_t>(100 + process));
      row->set_rank(made.processes > 1 ? static_cast<int32_t>(process) : -1);
      row->set_number(i + 1);
      row->set_start_ns(now_ns);
      row->set_traced(made.traced);
      if (i > 0) {  // nobody knows when the first began
        row->set_duration_ns(static_cast<uint64_t>(1e6 * of_run * times *
                                                   std::exp(made.step_spread * noise)));
      }
      now_ns += row->duration_ns();
    }
  }
  return run;
}

void Answer(const MadeRun& made, compare::Run* run) {
  for (const compare::ProcessSteps& process : run->processes) {
    compare::ProcessReplies& replies = run->replies.emplace_back();
    AddSyncs(made, process, 0, process.steps.size(), replies.all.mutable_syncs());
    if (made.traced) {
      replies.all.mutable_gpu()->set_traced_ns(process.BeginOf(compare::kPieces) -
                                               process.BeginOf(0));
    }
    for (size_t piece = 0; piece < compare::kPieces; ++piece) {
      AddSyncs(made, process, process.FirstStepOf(piece),
               process.FirstStepOf(piece + 1), replies.pieces[piece].mutable_syncs());
      for (const MadeSync& sync : made.syncs) {
        if (sync.text.empty()) continue;
        v1::SourceDef* source = replies.pieces[piece].add_sources();
        source->set_file(sync.file);
        source->set_line(static_cast<uint32_t>(sync.line));
        source->set_first_line(static_cast<uint32_t>(sync.line - 1));
        source->add_lines(sync.above);
        source->add_lines(sync.text);
      }
    }
  }
}

compare::Comparison CompareMade(const std::vector<MadeRun>& a,
                                const std::vector<MadeRun>& b, uint64_t seed,
                                double difference_percent, bool own_steps) {
  Normal normal(seed);
  compare::Runs runs_a, runs_b;
  for (const MadeRun& made : a) runs_a.push_back(MakeWhole(made, normal));
  for (const MadeRun& made : b) runs_b.push_back(MakeWhole(made, normal));
  std::vector<compare::Run*> all;
  for (compare::Run& run : runs_a) all.push_back(&run);
  for (compare::Run& run : runs_b) all.push_back(&run);
  compare::Question question;
  question.difference_percent = difference_percent;
  question.each_process = true;
  question.chosen =
      own_steps ? compare::ChooseOwnSteps(all) : compare::ChooseSteps(all);
  for (size_t i = 0; i < a.size(); ++i) Answer(a[i], &runs_a[i]);
  for (size_t i = 0; i < b.size(); ++i) Answer(b[i], &runs_b[i]);
  return compare::Compare(runs_a, runs_b, question);
}

compare::Comparison MeasureMade(const std::vector<MadeRun>& made, uint64_t seed) {
  Normal normal(seed);
  compare::Runs runs;
  for (const MadeRun& one : made) runs.push_back(MakeWhole(one, normal));
  std::vector<compare::Run*> all;
  for (compare::Run& run : runs) all.push_back(&run);
  const compare::ChosenSteps chosen = compare::ChooseSteps(all);
  for (size_t i = 0; i < made.size(); ++i) Answer(made[i], &runs[i]);
  return compare::MeasureAlone(runs, chosen);
}

}  // namespace lull::testing
