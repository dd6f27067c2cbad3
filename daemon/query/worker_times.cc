#include "daemon/query/worker_times.h"

#include <algorithm>
#include <utility>

namespace lull::query {
namespace {

using aggregate::Sampled;

// The 95th percentile of fewer is the largest of them.
constexpr size_t kEnoughStretches = 20;
constexpr uint64_t kEnoughCalls = 10;
constexpr size_t kEnoughActive = 3;
// More of the samples without a stack, or of the time without a processor, and what was
// seen does not tell what more workers would do.
constexpr double kMostUnknown = 0.05;
constexpr double kMostReady = 0.10;
// A training that does less than this beside waiting has no pace of its own.
constexpr double kLeastPace = 0.01;

double D(uint64_t value) { return static_cast<double>(value); }

// Stretches in which batches were asked for, without the first and the last: a loader
// may begin and end within those.
std::pair<size_t, size_t> Active(const std::vector<WorkerTime>& times) {
  auto asks = [](const WorkerTime& time) { return time.calls > 0; };
  const auto first = std::find_if(times.begin(), times.end(), asks);
  const auto last = std::find_if(times.rbegin(), times.rend(), asks);
  const size_t begin = static_cast<size_t>(first - times.begin()) + 1;
  const size_t back = static_cast<size_t>(last - times.rbegin()) + 1;
  const size_t end = times.size() - std::min(back, times.size());
  return {begin, std::max(begin, end)};
}

struct Pace {
  WorkerTime sum;
  uint64_t time_ns = 0;  // of the trainings
  size_t stretches = 0;
};

Pace PaceOf(const WorkerTimes& times) {
  Pace pace;
  for (const auto& [owner, of_owner] : times.owners) {
    const auto [begin, end] = Active(of_owner);
    for (size_t i = begin; i < end; ++i) {
      if (of_owner[i].calls == 0) continue;
      pace.sum += of_owner[i];
      pace.time_ns += times.length_ns;
      ++pace.stretches;
    }
  }
  return pace;
}

const char* WhyNoEstimate(const Pace& pace) {
  const WorkerTime& sum = pace.sum;
  if (sum.calls < kEnoughCalls || pace.stretches < kEnoughActive) {
    return "the training was not seen to ask for batches for long enough";
  }
  if (!aggregate::IsEnough(sum.known)) return "there are too few samples";
  if (D(sum.unknown_ns) > kMostUnknown * D(sum.known.time_ns)) {
    return "too many samples have no stack";
  }
  if (D(sum.ready_ns) > kMostReady * D(sum.busy.time_ns)) {
    return "the workers lacked processors: more of them would share what there is";
  }
  if (D(pace.time_ns) - D(sum.waited_ns) < kLeastPace * D(pace.time_ns)) {
    return "the training did nothing but wait for batches, so that it has no pace that "
           "could be kept up with";
  }
  return nullptr;
}

}  // namespace

WorkerTime& WorkerTime::operator+=(const WorkerTime& other) {
  life_ns += other.life_ns;
  known += other.known;
  busy += other.busy;
  unknown_ns += other.unknown_ns;
  ready_ns += other.ready_ns;
  calls += other.calls;
  waited_ns += other.waited_ns;
  return *this;
}

void FillOverTime(const WorkerTimes& times, lull::v1::LoaderWorkers* out) {
  size_t count = 0;
  for (const auto& [owner, of_owner] : times.owners) {
    count = std::max(count, of_owner.size());
  }
  WorkerTime sum;
  uint64_t begin = times.begin_ns;
  for (size_t i = 0; i < count; ++i) {
    WorkerTime now;
    for (const auto& [owner, of_owner] : times.owners) {
      if (i < of_owner.size()) now += of_owner[i];
    }
    const uint64_t at = times.begin_ns + i * times.length_ns;
    if (now.life_ns == 0) {  // a time without workers belongs to no stretch
      sum = {};
      begin = at + times.length_ns;
      continue;
    }
    sum += now;
    if (!aggregate::IsEnough(sum.known)) continue;
    lull::v1::BusyWorkers* row = out->add_over_time();
    row->set_start_ns(begin);
    row->set_end_ns(at + times.length_ns);
    row->set_workers(D(sum.life_ns) / D(row->end_ns() - begin));
    row->set_busy(row->workers() * D(sum.busy.time_ns) / D(sum.known.time_ns));
    begin = row->end_ns();
    sum = {};
  }
  double time = 0, busy = 0;
  std::vector<std::pair<double, double>> sorted;  // busy workers, for how long
  for (const lull::v1::BusyWorkers& row : out->over_time()) {
    const double length = D(row.end_ns() - row.start_ns());
    time += length;
    busy += row.busy() * length;
    sorted.emplace_back(row.busy(), length);
  }
  if (time > 0) out->set_busy_mean(busy / time);
  if (sorted.size() < kEnoughStretches) return;
  std::sort(sorted.begin(), sorted.end());
  double below = 0;
  for (const auto& [value, length] : sorted) {
    below += length;
    if (below < 0.95 * time) continue;
    out->set_busy_95(value);
    return;
  }
}

void FillEnough(const WorkerTimes& times, lull::v1::LoaderWorkers* out) {
  const Pace pace = PaceOf(times);
  if (const char* why = WhyNoEstimate(pace)) {
    out->set_no_estimate(why);
    return;
  }
  const aggregate::Share busy = aggregate::ShareOf(pace.sum.busy, pace.sum.known);
  const double alive =
      D(pace.sum.life_ns) / (D(pace.time_ns) - D(pace.sum.waited_ns)) / 100;
  out->set_enough(alive * busy.percent);
  out->set_enough_low(alive * busy.low);
  out->set_enough_high(alive * busy.high);
}

}  // namespace lull::query
