#include "daemon/export/export.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/export/chrome_writer.h"
#include "daemon/export/labels.h"
#include "daemon/export/output.h"
#include "daemon/export/perfetto_writer.h"
#include "daemon/export/process_export.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "daemon/query/totals.h"

namespace lull::exports {
namespace {

// Pids are told apart beyond what Linux gives: 2^22.
constexpr uint32_t kNextPids = 10'000'000;

v1::ReportRequest SelectionOf(const v1::ExportRequest& request) {
  v1::ReportRequest selection;
  if (request.has_rank()) selection.set_rank(request.rank());
  if (request.has_pid()) selection.set_pid(request.pid());
  if (request.has_since_ns()) selection.set_since_ns(request.since_ns());
  if (request.has_until_ns()) selection.set_until_ns(request.until_ns());
  return selection;
}

uint64_t Plus(uint64_t time_ns, uint64_t span_ns) {
  return span_ns > UINT64_MAX - time_ns ? UINT64_MAX : time_ns + span_ns;
}

std::unique_ptr<TraceWriter> NewWriter(v1::ExportFormat format, Output& output) {
  switch (format) {
    case v1::EXPORT_FORMAT_CHROME:
      return std::make_unique<ChromeWriter>(output);
    case v1::EXPORT_FORMAT_PERFETTO:
      return std::make_unique<PerfettoWriter>(output);
    default:
      return nullptr;
  }
}

// One job on its way into a file.
class JobExport {
 public:
  JobExport(storage::StoreReader& reader, const storage::JobRow& job,
            query::TimeRange range, std::vector<storage::ProcessRow> processes)
      : reader_(reader),
        job_(job),
        range_(range),
        processes_(std::move(processes)),
        names_(reader, job.id) {}

  absl::Status Run(v1::ExportFormat format, const PieceSink& sink) {
    Output output([&](absl::string_view bytes) { return sink(bytes, done_); });
    auto writer = NewWriter(format, output);
    if (writer == nullptr) {
      return absl::InvalidArgumentError(
          "this collector does not know that format; it may be older than the command");
    }
    LULL_ASSIGN_OR_RETURN(const ExportedJob exported, Describe());
    writer->Begin(exported);
    for (size_t i = 0; i < processes_.size(); ++i) {
      writer->BeginProcess(exported.processes[i]);
      LULL_RETURN_IF_ERROR(Add(i, output, *writer));
      writer->EndProcess();
      LULL_RETURN_IF_ERROR(names_.status());
      LULL_RETURN_IF_ERROR(output.status());
    }
    writer->End();
    done_ = 1;
    output.Flush();
    return output.status();
  }

 private:
  absl::StatusOr<ExportedJob> Describe() {
    ExportedJob exported;
    exported.name = job_.info.name().empty() ? job_.info.id() : job_.info.name();
    exported.start_ns = job_.info.start_ns();
    exported.start_realtime_ns = job_.info.start_realtime_ns();
    std::set<uint32_t> pids;
    for (const storage::ProcessRow& row : processes_) {
      ExportedProcess& process = exported.processes.emplace_back();
      process.index = static_cast<uint32_t>(exported.processes.size() - 1);
      process.pid = row.info.pid();
      process.shown_pid = process.pid;
      while (!pids.insert(process.shown_pid).second) process.shown_pid += kNextPids;
      process.rank = row.info.rank();
      process.command = row.info.command();
      LULL_ASSIGN_OR_RETURN(auto devices,
                            reader_.catalogue().All<storage::GpuDeviceRow>(row.id));
      for (storage::GpuDeviceRow& device : devices) {
        process.devices.push_back(std::move(device.def));
      }
    }
    return exported;
  }

  absl::Status Add(size_t number, Output& output, TraceWriter& writer) {
    const int64_t id = processes_[number].id;
    LULL_ASSIGN_OR_RETURN(auto rows, reader_.catalogue().All<storage::SeriesRow>(id));
    LULL_ASSIGN_OR_RETURN(auto streams,
                          reader_.catalogue().All<storage::GpuStreamRow>(job_.id));
    std::vector<aggregate::Series> series;
    for (const storage::SeriesRow& row : rows) {
      if (series.size() <= row.id) series.resize(row.id + 1);
      series[row.id] = row.series;
    }
    LULL_RETURN_IF_ERROR(AddUntraced(processes_[number], writer));
    const uint64_t start = job_.info.start_ns();
    const uint64_t since = range_.since == 0 ? 0 : Plus(start, range_.since);
    const uint64_t until = Plus(start, range_.until);
    Labels labels(names_, series, streams);
    ProcessExport process(labels, series, start, since, writer);
    const uint64_t end = std::min(until, std::max(job_.last_event_ns, start + 1));
    const auto share = [&](uint64_t ns) {
      const double part = static_cast<double>(std::clamp(ns, start, end) - start) /
                          static_cast<double>(end - start);
      return (static_cast<double>(number) + part) /
             static_cast<double>(processes_.size());
    };
    // What is live at the beginning of a range, what comes before it says.
    LULL_RETURN_IF_ERROR(
        reader_.events().Read(id, start, until, [&](const aggregate::Event& event) {
          if (!output.status().ok()) return;  // nobody listens any more
          done_ = share(event.start_ns);
          process.Take(event);
        }));
    process.Finish();
    return absl::OkStatus();
  }

  // Before, between and after the stretches in which tracing was on, if it ever was and
  // as far as that is known.
  absl::Status AddUntraced(const storage::ProcessRow& process, TraceWriter& writer) {
    LULL_ASSIGN_OR_RETURN(auto rows,
                          reader_.catalogue().All<storage::TracingRow>(process.id));
    const auto on = [](const storage::TracingRow& row) {
      return row.state == v1::TRACING_STATE_ACTIVE;
    };
    if (std::none_of(rows.begin(), rows.end(), on)) return absl::OkStatus();
    const uint64_t start = job_.info.start_ns();
    const auto add = [&](uint64_t from_ns, uint64_t to_ns) {
      const uint64_t from =
          std::max(range_.since, aggregate::AfterStart(from_ns, start));
      const uint64_t to = std::min(range_.until, aggregate::AfterStart(to_ns, start));
      if (from < to) writer.AddUntraced(from, to);
    };
    uint64_t off_since = std::max(process.info.start_ns(), start);
    bool is_on = false;
    for (const storage::TracingRow& row : rows) {
      if (on(row) == is_on) continue;
      if (on(row)) add(off_since, row.start_ns);
      is_on = on(row);
      off_since = row.start_ns;
    }
    if (!is_on) {
      add(off_since,
          std::min(query::EndOf(job_, process), query::TracingKnownUntil(rows)));
    }
    return absl::OkStatus();
  }

  storage::StoreReader& reader_;
  const storage::JobRow& job_;
  const query::TimeRange range_;
  const std::vector<storage::ProcessRow> processes_;
  query::Names names_;
  double done_ = 0;
};

}  // namespace

absl::Status Export(storage::Store& store, const v1::ExportRequest& request,
                    const PieceSink& sink) {
  const v1::ReportRequest selection = SelectionOf(request);
  const query::TimeRange range = query::RangeOf(selection);
  if (range.since > range.until) {
    return absl::InvalidArgumentError("the end of the range lies before its start");
  }
  LULL_ASSIGN_OR_RETURN(auto reader, store.NewReader());
  LULL_ASSIGN_OR_RETURN(auto job, query::FindJob(*reader, request.job()));
  LULL_ASSIGN_OR_RETURN(auto all, reader->catalogue().All<storage::ProcessRow>(job.id));
  auto processes = query::SelectProcesses(all, selection);
  if (processes.empty()) {
    return absl::NotFoundError(
        "no process of this job has that rank or pid, or has recorded anything");
  }
  return JobExport(*reader, job, range, std::move(processes))
      .Run(request.format(), sink);
}

}  // namespace lull::exports
