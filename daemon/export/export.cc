#include "daemon/export/export.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/base/status.h"
#include "daemon/export/call_lines.h"
#include "daemon/export/chrome_writer.h"
#include "daemon/export/labels.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "daemon/query/totals.h"

namespace lull::exports {
namespace {

using aggregate::Event;
using aggregate::EventType;

constexpr size_t kChunk = 1 << 20;
constexpr uint32_t kNoCorrelation = UINT32_MAX;

// One process of a job, event by event.
class ProcessExport {
 public:
  ProcessExport(Labels& labels, uint64_t job_start_ns, TraceWriter& writer)
      : labels_(labels), job_start_ns_(job_start_ns), writer_(writer) {}

  void Take(const Event& event) {
    if (!labels_.has(event.series)) return;
    switch (labels_.series(event.series).type) {
      case EventType::kApiCall:
        return TakeCall(event);
      case EventType::kTorchMemory:
        return TakeMemory(event);
      case EventType::kCoverage:
        return TakeCoverage(event);
      case EventType::kScope:
        if (!aggregate::ScopeView{event}.ended_here()) return;
        break;
      case EventType::kLaunch:
      case EventType::kSync:
      case EventType::kCopyAsync:
      case EventType::kDeviceMemory:
        lines_.AddHook({event.series, SliceOf(event)});
        return Write(lines_.Take());
      default:
        break;
    }
    TakeSlice(event);
  }

  void Finish() {
    WriteCalls();
    Write(lines_.TakeAll());
  }

 private:
  uint64_t Time(uint64_t ns) const { return aggregate::AfterStart(ns, job_start_ns_); }

  static uint32_t Correlation(uint32_t id) { return id == kNoCorrelation ? 0 : id; }

  Slice SliceOf(const Event& event) const {
    Slice slice;
    slice.start_ns = Time(event.start_ns);
    slice.duration_ns = event.duration_ns;
    slice.tid = event.tid;
    return slice;
  }

  void TakeSlice(const Event& event) {
    const aggregate::Series& series = labels_.series(event.series);
    const Label& label = labels_.Of(event.series);
    if (label.row == Row::kNone) return;
    Slice slice = SliceOf(event);
    if (aggregate::IsOperation(series.type)) {
      slice.correlation = Correlation(
          static_cast<uint32_t>(aggregate::KernelView{event}.correlation()));
      if (label.amount != nullptr) slice.amount = aggregate::AmountView{event}.amount();
    }
    if (label.row == Row::kSteps) {
      if (event.duration_ns == 0) return;  // of the first only the end is known
      slice.number = aggregate::StepView{event}.number();
    }
    writer_.Add(event.series, label, slice);
  }

  using Call = CallLines::Held;

  // A call of the driver within one of the runtime has the same number, which readers
  // want to find once: the outer one has it, and comes right behind.
  void TakeCall(const Event& event) {
    const aggregate::ApiCallView told{event};
    Call call{event.series, SliceOf(event)};
    call.slice.tid = static_cast<uint32_t>(told.caller());
    call.slice.correlation = Correlation(static_cast<uint32_t>(told.correlation()));
    lines_.AddCall(call.slice);
    Write(lines_.Take());
    auto [it, fresh] = calls_.try_emplace(call.slice.tid, call);
    if (fresh) return;
    Call& before = it->second;
    if (before.slice.correlation == call.slice.correlation &&
        before.slice.start_ns >= call.slice.start_ns) {
      before.slice.correlation = 0;
    }
    Write(before);
    before = call;
    if (calls_.size() > kMostThreads) WriteCalls();
  }

  void WriteCalls() {
    for (const auto& [tid, call] : calls_) Write(call);
    calls_.clear();
  }
  // CUPTI tells of calls that submit or block, and while it traces: the others are told
  // as the hooks have them.
  void Write(const std::vector<Call>& hooks) {
    for (const Call& hook : hooks) {
      Write(hook);
      if (!hook.has_call) {
        writer_.Add(labels_.CallOf(hook.series), labels_.CallLabel(hook.series),
                    hook.slice);
      }
    }
  }

  void Write(const Call& call) {
    const Label& label = labels_.Of(call.series);
    if (label.row != Row::kNone) writer_.Add(call.series, label, call.slice);
  }

  void TakeMemory(const Event& event) {
    const aggregate::Series& series = labels_.series(event.series);
    if ((series.variant & (aggregate::kVariantFailed | aggregate::kVariantBefore)) !=
        0) {
      return;
    }
    const aggregate::MemoryView told{event};
    const aggregate::TorchDevice device{event.arg2};
    TensorMemory memory;
    memory.time_ns = Time(event.start_ns);
    memory.tid = event.tid;
    memory.address = told.address();
    const auto bytes = static_cast<int64_t>(std::min<uint64_t>(
        told.bytes() != 0 ? told.bytes() : event.released_bytes, INT64_MAX));
    memory.bytes = aggregate::IsFree(series) ? -bytes : bytes;
    memory.device_type = device.type();
    memory.device = device.index();
    if (memory.bytes != 0) writer_.AddMemory(memory);
  }

  void TakeCoverage(const Event& event) {
    if (event.duration_ns == 0) return;
    const double share = static_cast<double>(aggregate::CoverageView{event}.busy_ns()) /
                         static_cast<double>(event.duration_ns);
    writer_.AddBusy(aggregate::DeviceOf(labels_.series(event.series)),
                    Time(event.start_ns), std::round(1000 * share) / 10);
  }

  static constexpr size_t kMostThreads = 4096;

  Labels& labels_;
  const uint64_t job_start_ns_;
  TraceWriter& writer_;
  absl::flat_hash_map<uint32_t, Call> calls_;  // the last one of each thread
  CallLines lines_;
};

lull::v1::ReportRequest SelectionOf(const lull::v1::ExportRequest& request) {
  lull::v1::ReportRequest selection;
  if (request.has_rank()) selection.set_rank(request.rank());
  if (request.has_pid()) selection.set_pid(request.pid());
  if (request.has_since_ns()) selection.set_since_ns(request.since_ns());
  if (request.has_until_ns()) selection.set_until_ns(request.until_ns());
  return selection;
}

uint64_t Plus(uint64_t time_ns, uint64_t span_ns) {
  return span_ns > UINT64_MAX - time_ns ? UINT64_MAX : time_ns + span_ns;
}

}  // namespace

absl::Status Export(storage::Store& store, const lull::v1::ExportRequest& request,
                    Sink sink) {
  const lull::v1::ReportRequest selection = SelectionOf(request);
  const query::TimeRange range = query::RangeOf(selection);
  if (range.since > range.until) {
    return absl::InvalidArgumentError("the end of the range lies before its start");
  }
  LULL_ASSIGN_OR_RETURN(auto reader, store.NewReader());
  LULL_ASSIGN_OR_RETURN(auto job, query::FindJob(*reader, request.job()));
  LULL_ASSIGN_OR_RETURN(auto all, reader->catalogue().All<storage::ProcessRow>(job.id));
  const auto processes = query::SelectProcesses(all, selection);
  if (processes.empty()) {
    return absl::NotFoundError(
        "no process of this job has that rank or pid, or has recorded anything");
  }
  ExportedJob exported;
  exported.name = job.info.name().empty() ? job.info.id() : job.info.name();
  exported.start_realtime_ns = job.info.start_realtime_ns();
  for (const storage::ProcessRow& row : processes) {
    ExportedProcess& process = exported.processes.emplace_back();
    process.index = static_cast<uint32_t>(exported.processes.size() - 1);
    process.pid = row.info.pid();
    process.rank = row.info.rank();
    LULL_ASSIGN_OR_RETURN(auto devices,
                          reader->catalogue().All<storage::GpuDeviceRow>(row.id));
    for (storage::GpuDeviceRow& device : devices) {
      process.devices.push_back(std::move(device.def));
    }
  }
  std::string out;
  out.reserve(kChunk + (kChunk >> 2));
  ChromeWriter writer(out);
  absl::Status sent;
  auto flush = [&](size_t least) {
    if (out.size() < least || !sent.ok()) return;
    sent = sink(out);
    out.clear();
  };
  writer.Begin(exported);
  query::Names names(*reader, job.id);
  for (size_t i = 0; i < processes.size(); ++i) {
    const int64_t id = processes[i].id;
    LULL_ASSIGN_OR_RETURN(auto rows, reader->catalogue().All<storage::SeriesRow>(id));
    LULL_ASSIGN_OR_RETURN(auto streams,
                          reader->catalogue().All<storage::GpuStreamRow>(job.id));
    std::vector<aggregate::Series> series;
    for (const storage::SeriesRow& row : rows) {
      if (series.size() <= row.id) series.resize(row.id + 1);
      series[row.id] = row.series;
    }
    Labels labels(names, series, streams);
    ProcessExport process(labels, job.info.start_ns(), writer);
    writer.BeginProcess(exported.processes[i]);
    LULL_RETURN_IF_ERROR(reader->events().Read(
        id, Plus(job.info.start_ns(), range.since),
        Plus(job.info.start_ns(), range.until), [&](const Event& event) {
          if (!sent.ok()) return;  // nobody listens any more
          process.Take(event);
          flush(kChunk);
        }));
    process.Finish();
    writer.EndProcess();
    LULL_RETURN_IF_ERROR(names.status());
    LULL_RETURN_IF_ERROR(sent);
  }
  writer.End();
  flush(0);
  return sent;
}

}  // namespace lull::exports
