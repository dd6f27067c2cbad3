#include "daemon/query/sums.h"

#include <algorithm>
#include <map>

#include "daemon/aggregate/accumulate.h"
#include "daemon/aggregate/accumulate_memory.h"
#include "daemon/aggregate/stretch.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

class Summation {
 public:
  Summation(storage::StoreReader& reader, const storage::JobRow& job, int64_t process,
            const std::vector<Series>& series)
      : reader_(reader), job_(job), process_(process), series_(series) {}

  // Adds [begin, middle) to `before` and [middle, end) to `cells`, event by event. One
  // pass for both: they mostly lie in the same blocks.
  absl::Status AddEvents(uint64_t begin, uint64_t middle, uint64_t end,
                         std::vector<Cell>& before, std::vector<Cell>& cells) {
    if (begin >= end) return absl::OkStatus();
    const uint64_t split = Absolute(job_, middle);
    std::vector<Event> memory_before, memory;
    std::map<DeviceId, Stretches> stretches;
    LULL_RETURN_IF_ERROR(reader_.events().Read(
        process_, Absolute(job_, begin), Absolute(job_, end), [&](const Event& event) {
          if (event.series >= series_.size()) return;
          const Series& series = series_[event.series];
          if (aggregate::IsStretch(series.type)) {
            return AddStretch(series, event, split, Absolute(job_, end), cells,
                              stretches[aggregate::DeviceOf(series)]);
          }
          bool early = event.start_ns < split;
          aggregate::AddEvent(series, event, (early ? before : cells)[event.series]);
          if (aggregate::ChangesLive(series.type)) {
            (early ? memory_before : memory).push_back(event);
          }
        }));
    for (const auto& [device, sums] : stretches) sums.MakeExact(cells);
    AddMemory(memory_before, before);
    AddMemory(memory, cells);
    return absl::OkStatus();
  }

  absl::Status AddBuckets(const std::vector<aggregate::BucketRun>& runs,
                          std::vector<Cell>& cells) {
    for (const aggregate::BucketRun& run : runs) {
      LULL_RETURN_IF_ERROR(
          reader_.cells().Read(process_, run.level, run.first, run.end,
                               [&cells](uint32_t id, const Cell& cell) {
                                 if (id < cells.size()) cells[id].Append(cell);
                               }));
    }
    return absl::OkStatus();
  }

  // The second that the end of the range cuts: what is known of it as a whole alone.
  absl::Status AddCutBucket(const aggregate::Edge& tail, std::vector<Cell>& cells) {
    if (tail.empty()) return absl::OkStatus();
    uint64_t bucket = tail.begin / aggregate::kBucketNs;
    return reader_.cells().Read(
        process_, 0, bucket, bucket + 1, [&](uint32_t id, const Cell& cell) {
          if (id < cells.size() && aggregate::IsOfCellsAlone(series_[id].type)) {
            cells[id].Append(cell);
          }
        });
  }

 private:
  // Of one device at an edge of the range. Busy and kernel time of Coverage that is cut
  // are parts by length, but idle time is exact, and so is what is left of traced time:
  // kernels are taken to have had their share of that.
  struct Stretches {
    uint64_t traced_ns = 0, idle_ns = 0, busy_ns = 0, kernel_ns = 0;
    uint32_t coverage = 0;  // its series

    void MakeExact(std::vector<Cell>& cells) const {
      const uint64_t busy = traced_ns - std::min(idle_ns, traced_ns);
      if (traced_ns == 0 || busy == busy_ns) return;
      const double share =
          busy_ns == 0 ? 0
                       : static_cast<double>(kernel_ns) / static_cast<double>(busy_ns);
      cells[coverage].amount += busy - busy_ns;  // modulo 2^64, as the next
      cells[coverage].amount2 +=
          static_cast<uint64_t>(std::min(1.0, share) * static_cast<double>(busy)) -
          kernel_ns;
    }
  };

  // Stretches do not cross buckets, so all that touch the edge start in its bucket.
  static void AddStretch(const Series& series, Event event, uint64_t begin,
                         uint64_t end, std::vector<Cell>& cells, Stretches& sums) {
    if (!aggregate::ClipStretch(series.type, begin, end, event)) return;
    aggregate::AddEvent(series, event, cells[event.series]);
    if (series.type == EventType::kIdle) {
      sums.idle_ns += event.duration_ns;
      return;
    }
    const aggregate::CoverageView view{event};
    sums.traced_ns += event.duration_ns;
    sums.busy_ns += view.busy_ns();
    sums.kernel_ns += view.kernel_ns();
    sums.coverage = event.series;
  }

  void AddMemory(std::vector<Event>& events, std::vector<Cell>& cells) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return aggregate::MemoryOrderNs(a) < aggregate::MemoryOrderNs(b);
    });
    for (const Event& event : events) {
      if (event.released_series >= cells.size()) continue;
      aggregate::AddMemory(
          event, [&cells](uint32_t id) -> Cell& { return cells[id]; },
          [this](uint32_t id) -> const Series& { return series_[id]; });
    }
  }

  storage::StoreReader& reader_;
  const storage::JobRow& job_;
  const int64_t process_;
  const std::vector<Series>& series_;
};

}  // namespace

uint64_t Absolute(const storage::JobRow& job, uint64_t after_start) {
  if (after_start == 0) return 0;
  return after_start > aggregate::kForever - job.info.start_ns()
             ? aggregate::kForever
             : after_start + job.info.start_ns();
}

TimeRange RangeOf(const v1::ReportRequest& request) {
  TimeRange range;
  if (request.has_since_ns()) range.since = request.since_ns();
  if (request.has_until_ns()) range.until = request.until_ns();
  return range;
}

absl::StatusOr<ProcessSums> LoadSums(storage::StoreReader& reader,
                                     const storage::JobRow& job,
                                     const storage::ProcessRow& process,
                                     TimeRange range) {
  ProcessSums sums;
  sums.process = process;
  sums.range = range;
  LULL_ASSIGN_OR_RETURN(sums.rings,
                        reader.catalogue().All<storage::RingRow>(process.id));
  std::erase_if(sums.rings, [](const storage::RingRow& ring) {
    return ring.ring == storage::kDerivedRing;
  });
  LULL_ASSIGN_OR_RETURN(auto rows,
                        reader.catalogue().All<storage::SeriesRow>(process.id));
  sums.series.resize(rows.empty() ? 1 : rows.back().id + 1);
  for (const storage::SeriesRow& row : rows) sums.series[row.id] = row.series;
  sums.cells.resize(sums.series.size());
  LULL_ASSIGN_OR_RETURN(sums.recorded, Recorded::Load(reader, job));
  LULL_ASSIGN_OR_RETURN(sums.devices,
                        reader.catalogue().All<storage::GpuDeviceRow>(process.id));
  LULL_ASSIGN_OR_RETURN(sums.tracing,
                        reader.catalogue().All<storage::TracingRow>(process.id));
  LULL_ASSIGN_OR_RETURN(sums.non_finite,
                        reader.catalogue().All<storage::NonFiniteRow>(process.id));
  std::vector<Cell> before(sums.series.size());

  // In the order of time: [0, since) for what is live when the range begins, the edge
  // around its start, its buckets, the edge at its end.
  const aggregate::Cover past = aggregate::CoverRange(0, range.since);
  const aggregate::Cover cover = aggregate::CoverRange(range.since, range.until);
  Summation sum(reader, job, process.id, sums.series);
  LULL_RETURN_IF_ERROR(sum.AddBuckets(past.runs, before));
  const uint64_t begin = past.tail.empty() ? range.since : past.tail.begin;
  const uint64_t end = cover.head.empty() ? range.since : cover.head.end;
  LULL_RETURN_IF_ERROR(sum.AddEvents(begin, range.since, end, before, sums.cells));
  LULL_RETURN_IF_ERROR(sum.AddBuckets(cover.runs, sums.cells));
  LULL_RETURN_IF_ERROR(sum.AddEvents(cover.tail.begin, cover.tail.begin, cover.tail.end,
                                     before, sums.cells));
  LULL_RETURN_IF_ERROR(sum.AddCutBucket(cover.tail, sums.cells));
  sums.live_before.reserve(before.size());
  for (const Cell& cell : before) sums.live_before.push_back(cell.live);
  return sums;
}

}  // namespace lull::query
