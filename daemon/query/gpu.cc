#include "daemon/query/gpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "daemon/advice/verdict.h"
#include "daemon/aggregate/kernel_names.h"

namespace lull::query {
namespace {

constexpr int kMaxSpans = 1000;

struct DeviceTime {
  uint64_t traced_ns = 0;
  uint64_t idle_ns = 0;
  uint64_t kernel_ns = 0;
  uint64_t busy_ns() const { return traced_ns - std::min(idle_ns, traced_ns); }
};

// By process and device.
std::map<std::pair<size_t, DeviceId>, DeviceTime> DeviceTimes(
    const std::vector<ProcessSums>& processes) {
  std::map<std::pair<size_t, DeviceId>, DeviceTime> times;
  for (size_t p = 0; p < processes.size(); ++p) {
    processes[p].ForEach([&](const Series& series, const Cell& cell) {
      if (!aggregate::IsStretch(series.type) || cell.empty()) return;
      DeviceTime& time = times[{p, aggregate::DeviceOf(series)}];
      if (series.type == EventType::kIdle) {
        time.idle_ns += cell.total_ns;
        return;
      }
      time.traced_ns += cell.total_ns;
      time.kernel_ns += cell.amount2;
    });
  }
  return times;
}

void AddOperations(const Series& series, const Cell& cell, v1::Gpu* out) {
  if (!aggregate::IsTraced(series)) return;
  switch (series.type) {
    case EventType::kGpuKernel:
      return out->set_kernels(out->kernels() + cell.count);
    case EventType::kGpuCopy:
      return out->set_copies(out->copies() + cell.count);
    case EventType::kGpuMemset:
      return out->set_memsets(out->memsets() + cell.count);
    case EventType::kGpuGraph:
      return out->set_graphs(out->graphs() + cell.count);
    default:
      return;
  }
}

// The last that was heard of a process.
uint64_t EndOf(const storage::JobRow& job, const storage::ProcessRow& process) {
  if (process.end_ns != 0) return process.end_ns;
  return std::max(process.counters.as_of_ns(),
                  job.ended ? job.end.end_ns() : job.last_event_ns);
}

void AddSpans(const storage::JobRow& job, const ProcessSums& sums,
              std::vector<v1::TracingSpan>& spans) {
  const uint64_t process_end =
      std::min(EndOf(job, sums.process), TracingKnownUntil(sums.tracing));
  for (size_t i = 0; i < sums.tracing.size(); ++i) {
    const storage::TracingRow& row = sums.tracing[i];
    uint64_t end = i + 1 < sums.tracing.size() ? sums.tracing[i + 1].start_ns
                                               : std::max(process_end, row.start_ns);
    uint64_t from = std::max(sums.range.since,
                             aggregate::AfterStart(row.start_ns, job.info.start_ns()));
    uint64_t to =
        std::min(sums.range.until, aggregate::AfterStart(end, job.info.start_ns()));
    if (row.state == v1::TRACING_STATE_OFF || from >= to) continue;
    v1::TracingSpan span;
    span.set_pid(sums.process.info.pid());
    span.set_start_ns(from);
    span.set_duration_ns(to - from);
    span.set_state(row.state);
    span.set_reason(row.reason);
    spans.push_back(std::move(span));
  }
}

void FillSpans(const View& view, v1::Gpu* out) {
  std::vector<v1::TracingSpan> spans;
  for (const ProcessSums& sums : view.processes) AddSpans(view.job, sums, spans);
  std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return a.start_ns() < b.start_ns();
  });
  for (v1::TracingSpan& span : spans) {
    if (span.state() == v1::TRACING_STATE_YIELDED) {
      out->set_yielded_ns(out->yielded_ns() + span.duration_ns());
    }
    if (out->spans_size() < kMaxSpans) *out->add_spans() = std::move(span);
  }
}

void FillLost(const std::vector<ProcessSums>& processes, v1::Gpu* out) {
  for (const ProcessSums& sums : processes) {
    const storage::ProcessRow& p = sums.process;
    out->set_cupti_dropped(out->cupti_dropped() + p.counters.cupti_dropped());
    out->set_records_lost(out->records_lost() + p.counters.gpu_records_lost());
    out->set_records_bad(out->records_bad() + p.counters.gpu_records_bad());
    out->set_late_operations(out->late_operations() + p.late_operations);
  }
}

std::string ValueText(uint64_t bits) {
  double value = 0;
  memcpy(&value, &bits, sizeof(value));
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

}  // namespace

void FillGpu(View& view, v1::Gpu* out) {
  Names& names = *view.names;
  out->set_mode(view.job.info.gpu_mode());
  out->set_schedule(view.job.info.gpu_schedule());
  TimeShares shares;
  for (const ProcessSums& sums : view.processes) {
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (cell.empty()) return;
      AddOperations(series, cell, out);
      if (series.type == EventType::kIdle && aggregate::CauseOf(series) < kCauses) {
        shares.idle_ns[aggregate::CauseOf(series)] += cell.total_ns;
      }
      if (series.type == EventType::kGpuKernel && aggregate::IsTraced(series) &&
          aggregate::IsCommunicationKernel(
              names.KernelName(names.Kernel(aggregate::KernelOf(series)).name))) {
        shares.communication_ns += cell.total_ns;
      }
    });
  }
  uint64_t idle_ns = 0;
  for (const auto& [key, time] : DeviceTimes(view.processes)) {
    out->set_devices(out->devices() + 1);
    shares.traced_ns += time.traced_ns;
    shares.kernel_ns += std::min(time.kernel_ns, time.busy_ns());
    idle_ns += time.idle_ns;
  }
  shares.busy_ns = shares.traced_ns - std::min(idle_ns, shares.traced_ns);
  out->set_traced_ns(shares.traced_ns);
  out->set_idle_ns(idle_ns);
  out->set_busy_ns(shares.busy_ns);
  out->set_kernel_ns(std::min(shares.kernel_ns, shares.busy_ns));
  out->set_unknown_ns(shares.idle_ns[v1::GAP_CAUSE_UNKNOWN]);
  FillLost(view.processes, out);
  FillSpans(view, out);
  if (shares.traced_ns == 0) {
    out->set_missing(WhyNoGpuTruth(view.job, view.processes));
  } else {
    out->set_verdict(Verdict(shares));
  }
}

void FillDevices(const View& view, v1::ReportReply* reply) {
  const std::vector<ProcessSums>& processes = view.processes;
  auto times = DeviceTimes(processes);
  for (size_t p = 0; p < processes.size(); ++p) {
    for (const storage::GpuDeviceRow& device : processes[p].devices) {
      const v1::GpuDeviceDef& def = device.def;
      v1::DeviceRow* row = reply->add_devices();
      row->set_pid(processes[p].process.info.pid());
      row->set_device(Number(device.device));
      row->set_name(def.name());
      row->set_multiprocessors(def.multiprocessors());
      row->set_compute_capability(def.compute_capability());
      row->set_total_bytes(def.total_bytes());
      const DeviceTime& time = times[{p, device.device}];
      row->set_traced_ns(time.traced_ns);
      row->set_busy_ns(time.busy_ns());
    }
  }
}

void FillNonFinite(View& view, v1::ReportReply* reply) {
  for (const ProcessSums& sums : view.processes) {
    for (const storage::NonFiniteRow& first : sums.non_finite) {
      v1::NonFinite* row = reply->add_non_finite();
      row->set_pid(sums.process.info.pid());
      row->set_rank(sums.process.info.rank());
      row->set_value(ValueText(first.value));
      row->set_time_ns(aggregate::AfterStart(first.time_ns, view.job.info.start_ns()));
      row->set_step(first.step);
      row->set_step_known(first.step_known);
      if (first.series >= sums.series.size()) continue;
      const Series& series = sums.series[first.series];
      view.names->FillSite(series.line_site, row->mutable_site());
      view.names->FillStack(series.python_stack, row->mutable_stack());
    }
  }
}

}  // namespace lull::query
