#include <algorithm>
#include <string>
#include <utility>

#include "daemon/aggregate/buckets.h"
#include "daemon/base/status.h"
#include "daemon/query/hot.h"
#include "daemon/query/loader_costs.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"
#include "daemon/query/totals.h"
#include "daemon/query/worker_times.h"

namespace lull::query {
namespace {

using aggregate::AfterStart;
using aggregate::Sampled;
using aggregate::SampleRole;

// Each is a look into the store for each worker.
constexpr uint64_t kMostStretches = 100;

bool IsWorker(const ProcessSums& sums) { return sums.process.info.worker_of() != 0; }

// The part of its life that is shown, after the start of the job.
using Life = std::pair<uint64_t, uint64_t>;
Life LifeOf(const storage::JobRow& job, const ProcessSums& sums) {
  const uint64_t begin = AfterStart(sums.process.info.start_ns(), job.info.start_ns());
  const uint64_t end = AfterStart(EndOf(job, sums.process), job.info.start_ns());
  return {std::max(begin, sums.range.since),
          std::max(std::max(begin, sums.range.since), std::min(end, sums.range.until))};
}

uint32_t MostAtOnce(const std::vector<Life>& lives) {
  std::vector<std::pair<uint64_t, int>> changes;  // ends sort before beginnings
  for (const auto& [begin, end] : lives) {
    if (begin >= end) continue;
    changes.emplace_back(begin, 1);
    changes.emplace_back(end, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return static_cast<uint32_t>(most);
}

// A loader that has workers, or one that has none.
enum class LoaderKind { kNone, kWithWorkers, kAlone };

LoaderKind KindOf(const Series& series, Names& names) {
  if (!aggregate::IsLoading(series)) return LoaderKind::kNone;
  const std::string loader = LoaderClass(names.ScopePath(series.native_stack));
  if (loader.starts_with("_MultiProcessing")) return LoaderKind::kWithWorkers;
  return loader.starts_with("_SingleProcess") ? LoaderKind::kAlone : LoaderKind::kNone;
}

// What series of one process say of loading, looked up once each.
struct Meanings {
  struct One {
    LoaderAt at;
    bool unknown = false;  // a sample of a worker's main thread without a stack
    LoaderKind kind = LoaderKind::kNone;
  };
  std::vector<One> of;  // by series
};

Meanings MeaningsOf(const ProcessSums& sums, bool others_load, Names& names,
                    Stacks& stacks) {
  Meanings meanings;
  meanings.of.resize(sums.series.size());
  for (size_t id = 1; id < sums.series.size(); ++id) {
    const Series& series = sums.series[id];
    Meanings::One& one = meanings.of[id];
    if (series.type == EventType::kScope) one.kind = KindOf(series, names);
    if (series.type != EventType::kHostSample) continue;
    const std::vector<uint32_t>& frames = stacks.Frames(series.python_stack);
    if (!aggregate::HasStack(aggregate::QualityOf(series)) || frames.empty()) {
      one.unknown = IsWorker(sums) && aggregate::RoleOf(series) == SampleRole::kLoader;
      continue;
    }
    one.at = IsWorker(sums) ? AtInWorker(stacks, frames)
                            : AtInTraining(stacks, frames, others_load);
    if (one.at.work == LoaderWork::kNone && IsWorker(sums) &&
        aggregate::RoleOf(series) == SampleRole::kLoader) {
      one.at = {LoaderWork::kOther, frames.size()};  // before and after its loop
    }
  }
  return meanings;
}

void Add(const Series& series, const Meanings::One& meaning, const Cell& cell,
         WorkerTime* time) {
  if (meaning.kind == LoaderKind::kWithWorkers) {
    time->calls += cell.count;
    time->waited_ns += cell.total_ns;
  }
  if (series.type != EventType::kHostSample ||
      aggregate::RoleOf(series) != SampleRole::kLoader) {
    return;
  }
  const Sampled sampled = aggregate::SampledOf(cell);
  if (meaning.unknown) time->unknown_ns += sampled.time_ns;
  if (meaning.at.work == LoaderWork::kNone) return;
  time->known += sampled;
  if (meaning.at.work == LoaderWork::kWaiting) return;
  time->busy += sampled;
  if (aggregate::StateOf(series) == aggregate::SampleState::kReady) {
    time->ready_ns += sampled.time_ns;
  }
}

struct Stretches {
  uint32_t level = 0;
  uint64_t first = 0;  // buckets of that level
  uint64_t end = 0;

  uint64_t length() const {
    return aggregate::kBucketNs << (aggregate::kBucketShift * level);
  }
};

// Whole buckets while there are workers, as narrow as may be.
Stretches StretchesOf(const std::vector<Life>& lives) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const Life& life : lives) {
    begin = std::min(begin, life.first);
    end = std::max(end, life.second);
  }
  Stretches out;
  for (;; ++out.level) {
    const uint64_t length = out.length();
    out.first = (begin + length - 1) / length;
    out.end = std::max(out.first, end / length);
    if (out.end - out.first <= kMostStretches ||
        out.level + 1 == aggregate::kBucketLevels) {
      return out;
    }
  }
}

absl::Status AddTimes(const View& view, const ProcessSums& sums,
                      const Meanings& meanings, const Stretches& stretches,
                      std::vector<WorkerTime>* times) {
  const auto [begin, end] = LifeOf(view.job, sums);
  times->resize(stretches.end - stretches.first);
  for (uint64_t bucket = stretches.first; bucket < stretches.end; ++bucket) {
    const uint64_t from = bucket * stretches.length();
    const uint64_t to = from + stretches.length();
    if (to <= begin || end <= from) continue;
    WorkerTime& time = (*times)[bucket - stretches.first];
    if (IsWorker(sums)) time.life_ns += std::min(to, end) - std::max(from, begin);
    LULL_RETURN_IF_ERROR(view.reader->cells().Read(
        sums.process.id, stretches.level, bucket, bucket + 1,
        [&](uint32_t id, const Cell& cell) {
          if (id < sums.series.size()) {
            Add(sums.series[id], meanings.of[id], cell, &time);
          }
        }));
  }
  return absl::OkStatus();
}

// Where batches are loaded, and what that cost.
struct Loading {
  LoaderCosts workers;
  LoaderCosts training;
  WorkerTime sum;  // of all workers
  uint64_t own_batches = 0;
  uint64_t own_ns = 0;
};

void AddCosts(const ProcessSums& sums, const Meanings& meanings, Loading* loading) {
  LoaderCosts& costs = IsWorker(sums) ? loading->workers : loading->training;
  for (size_t id = 1; id < sums.series.size(); ++id) {
    const Cell& cell = sums.cells[id];
    if (cell.count == 0) continue;
    const Meanings::One& meaning = meanings.of[id];
    if (meaning.kind == LoaderKind::kAlone) {
      loading->own_batches += cell.count;
      loading->own_ns += cell.total_ns;
    }
    Add(sums.series[id], meaning, cell, &loading->sum);
    if (sums.series[id].type != EventType::kHostSample) continue;
    costs.Add(meaning.at, sums.series[id], cell);
  }
}

void FillTotals(const WorkerTime& sum, v1::LoaderWorkers* out) {
  out->set_samples(sum.known.samples);
  out->set_time_ns(sum.known.time_ns + sum.unknown_ns);
  out->set_waiting_ns(sum.known.time_ns - sum.busy.time_ns);
  out->set_unknown_ns(sum.unknown_ns);
  out->set_ready_ns(sum.ready_ns);
  if (aggregate::IsEnough(sum.known)) {
    SetShare(sum.busy, sum.known, out->mutable_busy());
  }
}

// For samples that stand for `sampled_ns` of a time that is known.
double ScaleTo(uint64_t known_ns, uint64_t sampled_ns) {
  return known_ns == 0 || sampled_ns == 0
             ? 1
             : static_cast<double>(known_ns) / static_cast<double>(sampled_ns);
}

void FillCosts(const Loading& loading, uint32_t top, v1::DataLoading* reply) {
  const WorkerTime& sum = loading.sum;
  reply->set_batches(sum.calls);
  reply->set_own_batches(loading.own_batches);
  const double scale = ScaleTo(sum.life_ns, sum.known.time_ns + sum.unknown_ns);
  const double own_scale = ScaleTo(loading.own_ns, loading.training.time_ns());
  auto* lines = reply->mutable_lines();
  loading.workers.FillLines(scale, lines);
  loading.training.FillLines(own_scale, lines);
  loading.training.FillParts(own_scale, reply->mutable_parts());
  if (sum.life_ns > 0) {
    loading.workers.FillParts(scale, reply->mutable_workers()->mutable_parts());
  }
  std::stable_sort(lines->begin(), lines->end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.total_ns(), a.own_ns()) >
           std::make_pair(b.total_ns(), b.own_ns());
  });
  Cut(top, lines);
}

}  // namespace

absl::Status FillLoading(View& view, v1::DataLoading* reply) {
  LULL_ASSIGN_OR_RETURN(const auto processes, SampledProcesses(view));
  Stacks& stacks = *view.stacks;
  const bool by_function = view.request.group_by() == v1::GROUP_BY_FUNCTION;
  Loading loading{{v1::HOST_SAMPLE_ROLE_LOADER, by_function, stacks},
                  {v1::HOST_SAMPLE_ROLE_MAIN, by_function, stacks},
                  {}};
  const bool others_load = std::any_of(processes.begin(), processes.end(), IsWorker);
  std::vector<Meanings> meanings;
  std::vector<Life> lives;
  WorkerTimes times;
  for (const ProcessSums& sums : processes) {
    meanings.push_back(MeaningsOf(sums, others_load, *view.names, stacks));
    AddCosts(sums, meanings.back(), &loading);
    if (!IsWorker(sums)) continue;
    lives.push_back(LifeOf(view.job, sums));
    loading.sum.life_ns += lives.back().second - lives.back().first;
    times.owners[sums.process.info.worker_of()];
  }
  FillCosts(loading, view.request.top(), reply);
  if (loading.sum.life_ns == 0) return stacks.status();

  v1::LoaderWorkers* out = reply->mutable_workers();
  out->set_workers(MostAtOnce(lives));
  out->set_owners(static_cast<uint32_t>(times.owners.size()));
  FillTotals(loading.sum, out);
  const Stretches stretches = StretchesOf(lives);
  times.begin_ns = stretches.first * stretches.length();
  times.length_ns = stretches.length();
  for (size_t i = 0; i < processes.size(); ++i) {
    const storage::ProcessRow& process = processes[i].process;
    auto owner = times.owners.find(IsWorker(processes[i]) ? process.info.worker_of()
                                                          : process.info.key());
    if (owner == times.owners.end()) continue;
    LULL_RETURN_IF_ERROR(
        AddTimes(view, processes[i], meanings[i], stretches, &owner->second));
  }
  FillOverTime(times, out);
  FillEnough(times, out);
  return stacks.status();
}

}  // namespace lull::query
