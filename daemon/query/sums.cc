#include "daemon/query/sums.h"

#include <algorithm>
#include <utility>

#include "daemon/aggregate/accumulate.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

using aggregate::Cell;
using aggregate::Event;
using aggregate::Series;

class Summation {
 public:
  Summation(storage::StoreReader& reader, const storage::JobRow& job, int64_t process,
            const std::vector<Series>& series)
      : reader_(reader),
        job_(job),
        process_(process),
        series_(series),
        cells_(series.size()) {}

  absl::Status Add(TimeRange range) {
    aggregate::Cover cover = aggregate::CoverRange(range.since, range.until);
    LULL_RETURN_IF_ERROR(AddEdge(cover.head));
    for (const aggregate::BucketRun& run : cover.runs) {
      LULL_RETURN_IF_ERROR(reader_.Cells(process_, run.level, run.first, run.end,
                                         [this](uint32_t id, const Cell& cell) {
                                           if (id < cells_.size())
                                             cells_[id].Append(cell);
                                         }));
    }
    return AddEdge(cover.tail);
  }

  std::vector<Cell> TakeCells() { return std::move(cells_); }

 private:
  // What lies before the start of the job belongs to its first instant.
  uint64_t Absolute(uint64_t after_start) const {
    if (after_start == 0) return 0;
    return after_start > aggregate::kForever - job_.start_ns
               ? aggregate::kForever
               : after_start + job_.start_ns;
  }

  absl::Status AddEdge(const aggregate::Edge& edge) {
    if (edge.empty()) return absl::OkStatus();
    std::vector<Event> memory;
    LULL_RETURN_IF_ERROR(reader_.Events(
        process_, Absolute(edge.begin), Absolute(edge.end), [&](const Event& event) {
          if (event.series >= cells_.size()) return;
          const Series& series = series_[event.series];
          aggregate::AddEvent(series, event, cells_[event.series]);
          if (aggregate::IsMemory(series.type)) memory.push_back(event);
        }));
    std::stable_sort(memory.begin(), memory.end(), [](const Event& a, const Event& b) {
      return aggregate::MemoryOrderNs(a) < aggregate::MemoryOrderNs(b);
    });
    for (const Event& event : memory) {
      if (event.released_series >= cells_.size()) continue;
      aggregate::AddMemory(
          event, [this](uint32_t id) -> Cell& { return cells_[id]; },
          [this](uint32_t id) -> const Series& { return series_[id]; });
    }
    return absl::OkStatus();
  }

  storage::StoreReader& reader_;
  const storage::JobRow& job_;
  const int64_t process_;
  const std::vector<Series>& series_;
  std::vector<Cell> cells_;
};

}  // namespace

absl::StatusOr<ProcessSums> LoadSums(storage::StoreReader& reader,
                                     const storage::JobRow& job,
                                     const storage::ProcessRow& process,
                                     TimeRange range) {
  ProcessSums sums;
  sums.process = process;
  LULL_ASSIGN_OR_RETURN(sums.rings, reader.Rings(process.id));
  LULL_ASSIGN_OR_RETURN(auto rows, reader.AllSeries(process.id));
  sums.series.resize(rows.empty() ? 1 : rows.back().id + 1);
  for (const storage::SeriesRow& row : rows) sums.series[row.id] = row.series;

  Summation summation(reader, job, process.id, sums.series);
  LULL_RETURN_IF_ERROR(summation.Add(range));
  sums.cells = summation.TakeCells();
  sums.live_before.resize(sums.series.size());
  if (range.since > 0) {
    Summation before(reader, job, process.id, sums.series);
    LULL_RETURN_IF_ERROR(before.Add({0, range.since}));
    std::vector<Cell> cells = before.TakeCells();
    std::transform(cells.begin(), cells.end(), sums.live_before.begin(),
                   [](const Cell& cell) { return cell.live; });
  }
  return sums;
}

}  // namespace lull::query
