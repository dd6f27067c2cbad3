#include "daemon/metrics/series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/words/cause_words.h"
#include "google/protobuf/descriptor.h"

namespace lull::metrics {
namespace {

using aggregate::WaitKind;

// All of them are told from the start, also at 0: a counter that first shows at its
// first increase has that increase hidden from Prometheus.
constexpr WaitKind kWaitKinds[] = {
    WaitKind::kData, WaitKind::kGil,   WaitKind::kLock,    WaitKind::kComm,
    WaitKind::kIo,   WaitKind::kSleep, WaitKind::kProcess, WaitKind::kOther};

int64_t Whole(uint64_t value) {
  return static_cast<int64_t>(
      std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

int64_t Millionths(double percent) { return std::llround(percent * 1e4); }

// An index of a rank or a device as a label.
std::string Index(int32_t index) { return index < 0 ? "none" : absl::StrCat(index); }

class Series {
 public:
  explicit Series(Labels labels) : labels_(std::move(labels)) {}

  void Add(Metric metric, int64_t value) {
    samples_.push_back({metric, labels_, value});
  }
  void Add(Metric metric, uint64_t value) { Add(metric, Whole(value)); }
  template <typename Value>
  void Add(Metric metric, const char* label, std::string_view of, Value value) {
    samples_.push_back({metric, labels_.With(label, of), Whole(value)});
  }
  void AddAt(Metric metric, const Labels& labels, int64_t value) {
    samples_.push_back({metric, labels, value});
  }
  void AddCount(Metric metric, uint64_t value) {
    samples_.push_back({metric, labels_, Whole(value), /*is_count=*/true});
  }

  const Labels& labels() const { return labels_; }
  std::vector<Sample> Take() { return std::move(samples_); }

 private:
  const Labels labels_;
  std::vector<Sample> samples_;
};

// Fields of Losses that say "not all of it was recorded".
void AddIncomplete(const query::RunTotals& run, Series* out) {
  const auto& losses = *v1::Losses::descriptor();
  const auto& values = *run.losses.GetReflection();
  for (int i = 0; i < losses.field_count(); ++i) {
    const auto& field = *losses.field(i);
    if (!field.options().GetExtension(v1::told).incomplete()) continue;
    const bool narrow =
        field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32;
    out->Add(Metric::kRunIncomplete, "what", field.name(),
             narrow ? values.GetUInt32(run.losses, &field)
                    : values.GetUInt64(run.losses, &field));
  }
  out->Add(Metric::kRunIncomplete, "what", "batches_set_aside",
           run.job.batches_set_aside());
  out->Add(Metric::kRunIncomplete, "what", "end_unseen",
           uint64_t{run.job.end_unseen()});
}

void AddGpu(const v1::ReportReply& reply, Series* out) {
  const v1::Gpu& gpu = reply.gpu();
  if (gpu.traced_ns() == 0) return;
  out->Add(Metric::kGpuTraced, gpu.traced_ns());
  out->Add(Metric::kGpuBusy, gpu.busy_ns());
  out->Add(Metric::kGpuKernel, gpu.kernel_ns());
  std::map<int, uint64_t> idle_ns;
  for (const v1::CauseRow& row : reply.gaps().causes()) {
    idle_ns[row.cause()] += row.total_ns();
  }
  const auto& causes = *v1::GapCause_descriptor();
  for (int i = 0; i < causes.value_count(); ++i) {
    const int cause = causes.value(i)->number();
    out->Add(Metric::kGpuIdle, "cause", CauseKey(static_cast<v1::GapCause>(cause)),
             idle_ns[cause]);
  }
  const std::pair<const char*, uint64_t> operations[] = {{"kernel", gpu.kernels()},
                                                         {"copy", gpu.copies()},
                                                         {"memset", gpu.memsets()},
                                                         {"graph", gpu.graphs()}};
  for (const auto& [kind, count] : operations) {
    out->Add(Metric::kGpuOperations, "kind", kind, count);
  }
  const std::pair<const char*, uint64_t> lost[] = {{"cupti", gpu.cupti_dropped()},
                                                   {"ring_full", gpu.records_lost()},
                                                   {"bad", gpu.records_bad()},
                                                   {"late", gpu.late_operations()}};
  for (const auto& [place, count] : lost) {
    out->Add(Metric::kGpuRecordsLost, "place", place, count);
  }
}

struct Held {
  int64_t live = 0, peak = 0, reserved = 0, growth = 0;
  bool reserved_known = false, grows = false;
};

void AddMemory(const v1::ReportReply& reply, Series* out) {
  std::map<std::pair<std::string, int32_t>, Held> all;  // by allocator and device
  for (const v1::MemoryRow& row : reply.memory().rows()) {
    Held& held = all[{row.allocator(), std::max(row.device(), -1)}];
    held.live += row.live_bytes();
    held.peak += row.peak_bytes();
    held.reserved += row.reserved_bytes();
    held.reserved_known |= row.reserved_known();
    held.growth += std::llround(row.growth().bytes_per_step());
    held.grows |= row.has_growth();
  }
  for (const auto& [key, held] : all) {
    const Labels labels =
        out->labels().With("allocator", key.first).With("device", Index(key.second));
    out->AddAt(Metric::kMemoryLive, labels, held.live);
    out->AddAt(Metric::kMemoryPeak, labels, held.peak);
    if (held.reserved_known) out->AddAt(Metric::kMemoryReserved, labels, held.reserved);
    if (held.grows) out->AddAt(Metric::kMemoryGrowth, labels, held.growth);
  }
  std::map<uint32_t, uint64_t> sizes;
  for (const v1::DeviceRow& row : reply.devices()) {
    sizes[row.device()] = std::max(sizes[row.device()], row.total_bytes());
  }
  for (const auto& [device, bytes] : sizes) {
    if (bytes == 0) continue;  // not known
    out->Add(Metric::kGpuMemorySize, "device", absl::StrCat(device), bytes);
  }
}

struct Used {
  Metric metric;
  const char* label;
  const char* of;
  const char* second_label;
  const char* of_second;
  bool (v1::HostUse::*is_told)() const;
  uint64_t (v1::HostUse::*value)() const;
};

#define LULL_USED(metric, label, of, second, of_second, field)       \
  {                                                                  \
    metric, label, of, second, of_second, &v1::HostUse::has_##field, \
        &v1::HostUse::field                                          \
  }
constexpr Used kOfProcesses[] = {
    LULL_USED(Metric::kCpu, "mode", "user", "", "", user_ns),
    LULL_USED(Metric::kCpu, "mode", "system", "", "", system_ns),
    LULL_USED(Metric::kResident, "", "", "", "", resident_bytes),
    LULL_USED(Metric::kMajorFaults, "", "", "", "", major_faults),
    LULL_USED(Metric::kStorage, "direction", "read", "", "", read_bytes),
    LULL_USED(Metric::kStorage, "direction", "written", "", "", written_bytes)};
// All processes of a rank tell of the same.
constexpr Used kOfTheirHost[] = {
    LULL_USED(Metric::kNetwork, "direction", "received", "", "", received_bytes),
    LULL_USED(Metric::kNetwork, "direction", "sent", "", "", sent_bytes),
    LULL_USED(Metric::kPressure, "resource", "cpu", "kind", "some", cpu_some_ns),
    LULL_USED(Metric::kPressure, "resource", "memory", "kind", "some", memory_some_ns),
    LULL_USED(Metric::kPressure, "resource", "memory", "kind", "full", memory_full_ns),
    LULL_USED(Metric::kPressure, "resource", "io", "kind", "some", io_some_ns),
    LULL_USED(Metric::kPressure, "resource", "io", "kind", "full", io_full_ns)};
#undef LULL_USED

// A program that became another one is two rows of one process.
using Processes = std::map<std::pair<uint32_t, uint64_t>, uint64_t>;

// What no process tells of has no series.
void AddUse(const query::RankTotals& rank, const Used& used, bool of_their_host,
            Series* out) {
  const auto& rows = rank.reply.processes();
  auto has_parent_here = [&rows](const v1::ProcessRow& row) {
    return std::any_of(rows.begin(), rows.end(), [&row](const v1::ProcessRow& other) {
      return other.pid() == row.parent_pid();
    });
  };
  Processes processes;
  for (const v1::ProcessRow& row : rows) {
    const v1::HostUse& use = row.host_use();
    if (!(use.*used.is_told)()) continue;
    // Its parent has its storage, once it has waited for it.
    if (used.metric == Metric::kStorage && has_parent_here(row)) continue;
    uint64_t& value = processes[{row.pid(), use.process_start()}];
    value = std::max<uint64_t>(value, Whole((use.*used.value)()));
  }
  if (processes.empty()) return;
  uint64_t all = 0;
  for (const auto& [process, value] : processes) {
    all = of_their_host ? std::max(all, value) : Whole(all + value);
  }
  Labels labels = out->labels();
  if (*used.label != '\0') labels = labels.With(used.label, used.of);
  if (*used.second_label != '\0') {
    labels = labels.With(used.second_label, used.of_second);
  }
  out->AddAt(used.metric, labels, Whole(all));
}

void AddHostUse(const query::RankTotals& rank, Series* out) {
  for (const Used& used : kOfProcesses) AddUse(rank, used, false, out);
  for (const Used& used : kOfTheirHost) AddUse(rank, used, true, out);
}

void AddHost(const query::RankTotals& rank, Series* out) {
  uint64_t life_ns = 0, rested_ns = 0, blocked_ns = 0, gc_ns = 0, run_queue_ns = 0;
  for (const v1::ProcessRow& row : rank.reply.processes()) {
    life_ns += row.has_recorded_ns() ? row.recorded_ns() : row.duration_ns();
    rested_ns += row.rested_ns();
    blocked_ns += row.blocked_ns();
    gc_ns += row.gc_ns();
    run_queue_ns += row.run_delay_ns();
  }
  out->Add(Metric::kProcessTime, life_ns);
  out->Add(Metric::kRestedTime, rested_ns);
  out->Add(Metric::kOverheadTime, rank.reply.overhead().self_ns());
  out->Add(Metric::kOverhead, Millionths(rank.reply.overhead().percent()));
  out->Add(Metric::kLaunches, rank.reply.launches());
  out->Add(Metric::kSyncBlocked, blocked_ns);
  out->Add(Metric::kGcPause, gc_ns);
  out->Add(Metric::kRunQueue, run_queue_ns);
  for (WaitKind kind : kWaitKinds) {
    const auto it = rank.waits.find(kind);
    const aggregate::Cell sum = it == rank.waits.end() ? aggregate::Cell() : it->second;
    const char* name = aggregate::WaitKindName(kind);
    out->Add(Metric::kWaitTime, "kind", name, sum.total_ns);
    out->Add(Metric::kWaits, "kind", name, sum.count);
  }
  if (rank.steps.count == 0) return;
  out->Add(Metric::kSteps, rank.steps.count);
  if (!rank.steps.timed) return;
  out->Add(Metric::kStepDuration, rank.steps.total_ns);
  out->AddCount(Metric::kStepDuration, rank.steps.count);
}

}  // namespace

std::vector<Sample> SeriesOfRun(const query::RunTotals& run) {
  const v1::Job& job = run.job;
  Series out(Labels("run", job.id()));
  out.AddAt(Metric::kRunInfo,
            out.labels().With("name", job.name()).With("host", job.host()), 1);
  const bool running = !job.ended() && !job.end_unseen();
  out.Add(Metric::kRunRunning, uint64_t{running});
  out.Add(Metric::kRunAsleep, uint64_t{job.asleep()});
  out.Add(Metric::kRunStart, job.start_realtime_ns());
  out.Add(Metric::kRunDuration, job.duration_ns());
  if (job.ended() && job.exit_status_known()) {
    out.Add(Metric::kRunExitStatus, int64_t{job.exit_status()});
  }
  AddIncomplete(run, &out);
  out.Add(Metric::kProcesses, uint64_t{job.processes()});
  out.Add(Metric::kWorkingProcesses, uint64_t{job.working_processes()});
  const v1::Losses& losses = run.losses;
  out.Add(Metric::kEventsCommitted, losses.events_committed());
  out.Add(Metric::kEventsStored, losses.events_stored());
  out.Add(Metric::kEventsLost, "place", "ring_full", losses.lost_ring_full());
  out.Add(Metric::kEventsLost, "place", "no_ring", losses.lost_no_ring());
  out.Add(Metric::kEventsLost, "place", "relay", losses.lost_relay());
  if (job.ended()) out.Add(Metric::kRelayCpu, run.overhead.relay_cpu_ns());
  out.Add(Metric::kOverheadBudget, Millionths(run.overhead.budget_percent()));
  return out.Take();
}

std::vector<Sample> SeriesOfRank(const std::string& run,
                                 const query::RankTotals& rank) {
  Series out(Labels("run", run).With("rank", Index(rank.rank)));
  AddHost(rank, &out);
  AddHostUse(rank, &out);
  AddGpu(rank.reply, &out);
  AddMemory(rank.reply, &out);
  return out.Take();
}

size_t AddRun(const query::RunTotals& run, const Bounds& bounds, Exposition* out) {
  const std::vector<Sample> of_run = SeriesOfRun(run);
  if (out->series() + of_run.size() > bounds.series) {
    return run.ranks.size() + run.ranks_left_out;
  }
  out->Add(of_run);
  size_t left_out = run.ranks_left_out;
  for (const query::RankTotals& rank : run.ranks) {
    const std::vector<Sample> of_rank = SeriesOfRank(run.job.id(), rank);
    if (of_rank.size() > bounds.series_of_a_rank ||
        out->series() + of_rank.size() > bounds.series) {
      ++left_out;
    } else {
      out->Add(of_rank);
    }
  }
  return left_out;
}

}  // namespace lull::metrics
