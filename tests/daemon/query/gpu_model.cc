#include "tests/daemon/query/gpu_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/blame/blame.h"

namespace lull::test {
namespace {

using lull::v1::GroupBy;

// Times for the engine start with the job, so that it cuts coverage where we do not
// care.
uint64_t After(uint64_t time_ns) { return time_ns - kJobStartNs; }

std::string StackName(uint32_t ref) {
  static const auto* const stacks = new std::vector<lull::v1::StackDef>(MakeStacks());
  std::string text;
  if (ref == 0) return text;
  for (const auto& f : (*stacks)[ref - 1].frames()) {
    absl::StrAppend(&text, f.function(), ":", f.line(), ";");
  }
  return text;
}

std::string SiteText(const TestEvent* event, GroupBy by) {
  if (event == nullptr || event->python == 0) return "|0|";
  bool function = by == lull::v1::GROUP_BY_FUNCTION;
  return absl::StrCat("/home/u/train.py|", function ? 0 : 10 + event->python % 3, "|f",
                      event->python % 2);
}

std::string CulpritText(const TestEvent* event, GroupBy by) {
  if (by != lull::v1::GROUP_BY_STACK) return SiteText(event, by);
  if (event == nullptr || event->type == v1::EVENT_TYPE_API_CALL) return "/";
  return absl::StrCat(StackName(event->python), "/", StackName(event->native));
}

const char* ApiText(const TestEvent* event) {
  if (event == nullptr) return "";
  constexpr const char* kNames[] = {"",
                                    "cudaStreamSynchronize",
                                    "cudaMalloc",
                                    "cudaFree",
                                    "c10::reportMemoryUsageToProfiler",
                                    "poll",
                                    "pthread_cond_timedwait",
                                    "cudaLaunchKernel"};
  return event->api < 8 ? kNames[event->api] : "?";
}

// The part of [start, end) that lies in the range of a query.
uint64_t Overlap(uint64_t start, uint64_t end, const GpuQuery& query) {
  uint64_t from = std::max(After(start), query.since);
  uint64_t to = std::min(After(end), query.until);
  return to > from ? to - from : 0;
}

bool Starts(uint64_t start, const GpuQuery& query) {
  return After(start) >= query.since && After(start) < query.until;
}

void Count(GpuRow& row, uint64_t duration_ns, uint64_t bytes) {
  row.min_ns = row.count == 0 ? duration_ns : std::min(row.min_ns, duration_ns);
  ++row.count;
  row.total_ns += duration_ns;
  row.max_ns = std::max(row.max_ns, duration_ns);
  row.bytes += bytes;
}

bool IsActive(const TestEvent& tracing) {
  return TracingView{tracing}.state() == v1::TRACING_STATE_ACTIVE;
}

std::string CopyText(const TestEvent& event) {
  if (event.type == v1::EVENT_TYPE_GPU_MEMSET) return "memset|";
  return GpuCopyView{event}.shape().kind() == v1::GPU_COPY_KIND_HOST_TO_DEVICE
             ? "HtoD|pageable"
             : "DtoH|pinned";
}

std::string RowSite(const lull::v1::Site& site) {
  return absl::StrCat(site.file(), "|", site.line(), "|", site.function());
}

std::string RowStack(
    const google::protobuf::RepeatedPtrField<lull::v1::Frame>& frames) {
  std::string text;
  for (const auto& f : frames) absl::StrAppend(&text, f.function(), ":", f.line(), ";");
  return text;
}

// Causes of which samples say what was done.
bool IsOfTheCode(uint32_t cause) {
  return cause == lull::v1::GAP_CAUSE_LAUNCH_BOUND ||
         cause == lull::v1::GAP_CAUSE_HOST_CODE ||
         cause == lull::v1::GAP_CAUSE_RUN_QUEUE;
}

}  // namespace

// A series is the index, plus one, of the first event that is the same but for its
// time: neighbouring parts with one explanation are one part.
class GpuModel::Judge : public blame::Sink {
 public:
  Judge(GpuModel& model, uint64_t process)
      : model_(model), process_(process), engine_({}, *this) {}

  void Run() {
    for (size_t i = 0; i < model_.events_.size(); ++i) {
      if (model_.events_[i].process != process_) continue;
      const TestEvent& e = model_.events_[i].event;
      auto it =
          first_.try_emplace({e.type, e.api, e.python, e.native, e.flags}, i).first;
      Add(e, static_cast<uint32_t>(it->second + 1));
    }
    engine_.Finish();
  }

  void OnIdle(const blame::Idle& idle) override {
    model_.idle_.push_back(
        {{process_, idle.start_ns + kJobStartNs, idle.end_ns + kJobStartNs},
         static_cast<uint32_t>(idle.cause),
         EventOf(idle.culprit),
         EventOf(idle.before),
         EventOf(idle.after),
         static_cast<uint32_t>(idle.tid)});
  }
  void OnSync(const blame::SyncCost& cost) override {
    TestEvent sync = *EventOf(cost.sync.series);
    sync.start_ns = cost.sync.start_ns + kJobStartNs;
    sync.duration_ns = cost.sync.end_ns - cost.sync.start_ns;
    model_.costs_.push_back({process_, sync, cost.needed_ns});
  }
  void OnSubmission(const blame::Submission&) override {}
  void OnCoverage(const blame::Coverage& coverage) override {
    model_.traced_.push_back(
        {process_, coverage.start_ns + kJobStartNs, coverage.end_ns + kJobStartNs});
  }

 private:
  const TestEvent* EventOf(uint32_t series) const {
    return series == 0 ? nullptr : &model_.events_[series - 1].event;
  }

  void AddHost(const TestEvent& e, uint32_t series, blame::HostKind kind) {
    uint64_t start = After(e.start_ns);
    engine_.Add(
        blame::HostEvent{start, start + e.duration_ns, ThreadId{e.tid}, series, kind});
  }

  void Add(const TestEvent& e, uint32_t series) {
    uint64_t start = After(e.start_ns), end = start + e.duration_ns;
    switch (e.type) {
      case v1::EVENT_TYPE_LAUNCH:
        return AddHost(e, series, blame::HostKind::kLaunch);
      case v1::EVENT_TYPE_SYNC:
        return AddHost(e, series, blame::HostKind::kSync);
      case v1::EVENT_TYPE_DEVICE_MEMORY:
        return AddHost(e, series, blame::HostKind::kAllocator);
      case v1::EVENT_TYPE_TORCH_MEMORY:
        if (e.duration_ns > 20'000) AddHost(e, series, blame::HostKind::kAllocator);
        return;
      case v1::EVENT_TYPE_GC_PAUSE:
        return AddHost(e, series, blame::HostKind::kGc);
      case v1::EVENT_TYPE_HOST_WAIT:
        return AddHost(e, series,
                       e.python == kDataStack ? blame::HostKind::kDataWait
                       : e.flags == 32        ? blame::HostKind::kGilWait
                                              : blame::HostKind::kHostWait);
      case v1::EVENT_TYPE_GPU_KERNEL:
      case v1::EVENT_TYPE_GPU_COPY:
      case v1::EVENT_TYPE_GPU_MEMSET:
      case v1::EVENT_TYPE_GPU_GRAPH:
        engine_.Add(blame::Operation{
            start, end, OperationView{e}.correlation(), DeviceId{0}, ContextId{1},
            StreamId{6 + e.native}, series,
            static_cast<blame::OperationKind>(e.type - v1::EVENT_TYPE_GPU_KERNEL)});
        return;
      case v1::EVENT_TYPE_API_CALL:
        return engine_.Add(blame::ApiCall{start, end, ApiCallView{e}.caller(),
                                          ApiCallView{e}.correlation(), series});
      case v1::EVENT_TYPE_GPU_TRACING:
        return IsActive(e) ? engine_.Trace(start) : engine_.Untrace(start);
      case v1::EVENT_TYPE_RUN_DELAY:
        if (RunDelayView{e}.preemptions() == 0) return;  // it only woke up late
        return engine_.Add(
            blame::RunDelay{start, end, ThreadId{e.tid}, RunDelayView{e}.delay_ns()});
      default:
        return;
    }
  }

  GpuModel& model_;
  const uint64_t process_;
  blame::Engine engine_;
  std::map<std::array<uint32_t, 5>, size_t> first_;
};

GpuModel::GpuModel(const std::vector<GpuEvent>& events) : events_(events) {
  std::set<uint64_t> processes;
  for (const GpuEvent& e : events_) processes.insert(e.process);
  for (uint64_t process : processes) {
    Judge(*this, process).Run();
    // Which operations were traced, by the state that tracing was in when they began.
    std::map<uint64_t, bool> states = {{0, false}};
    for (const GpuEvent& e : events_) {
      if (e.process == process && e.event.type == v1::EVENT_TYPE_GPU_TRACING) {
        states[e.event.start_ns] = IsActive(e.event);
      }
    }
    for (const GpuEvent& e : events_) {
      bool operation = e.event.type >= 9 && e.event.type <= 12;
      if (e.process != process || !operation) continue;
      if (std::prev(states.upper_bound(e.event.start_ns))->second) {
        ran_.push_back({process, &e.event});
      }
    }
  }
  FindDone();
}

// Samples within parts that are the code itself, of the thread that is judged.
void GpuModel::FindDone() {
  std::multimap<uint64_t, const GpuEvent*> samples;
  for (const GpuEvent& e : events_) {
    if (e.event.type == v1::EVENT_TYPE_HOST_SAMPLE)
      samples.emplace(e.event.start_ns, &e);
  }
  for (const Idle& idle : idle_) {
    if (!IsOfTheCode(idle.cause)) continue;
    auto end = samples.lower_bound(idle.at.end_ns);
    for (auto it = samples.lower_bound(idle.at.start_ns); it != end; ++it) {
      const GpuEvent& e = *it->second;
      if (idle.at.process == e.process && idle.tid == e.event.tid) {
        done_.emplace_back(&idle, &e.event);
      }
    }
  }
}

void GpuModel::AddDoing(const GpuQuery& query, GpuReport& report) const {
  std::map<std::string, std::map<std::string, uint64_t>> rows;
  std::map<std::string, uint64_t> all;
  for (const auto& [idle, sample] : done_) {
    if (query.process != 0 && query.process != idle->at.process) continue;
    if (!Starts(sample->start_ns, query)) continue;
    std::string gap = GapText(*idle, query.by);
    ++all[gap];
    if (sample->python == 0) continue;
    ++rows[gap][SiteText(sample, lull::v1::GROUP_BY_LINE)];
  }
  for (const auto& [gap, lines] : rows) {
    for (const auto& [line, samples] : lines) {
      GpuRow& row = report.doing[gap + " doing " + line];
      row.count = samples;
      if (all[gap] < 30) continue;
      row.total_ns = static_cast<uint64_t>(std::llround(
          1e6 * static_cast<double>(samples) / static_cast<double>(all[gap])));
      row.bytes = row.total_ns;  // no user's line calls another but main
    }
  }
}

// As docs/explained_idle.md says it.
uint64_t GpuModel::ExplainedOf(const GpuQuery& query, uint64_t process) const {
  double explained = 0;
  std::map<uint32_t, double> code;                            // by cause
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> samples;  // all, with a line
  for (const Idle& idle : idle_) {
    if (idle.at.process != process) continue;
    const uint64_t ns = Overlap(idle.at.start_ns, idle.at.end_ns, query);
    const TestEvent* site = idle.culprit;
    switch (idle.cause) {
      case lull::v1::GAP_CAUSE_UNKNOWN:
        continue;
      case lull::v1::GAP_CAUSE_HOST_CODE:
      case lull::v1::GAP_CAUSE_LAUNCH_BOUND:
        code[idle.cause] += static_cast<double>(ns);
        continue;
      case lull::v1::GAP_CAUSE_DEPENDENCY:
      case lull::v1::GAP_CAUSE_LAUNCH_LATENCY:
        site = idle.after;
        break;
      default:
        break;
    }
    const bool whole = idle.cause == lull::v1::GAP_CAUSE_RUN_QUEUE;
    if (whole || (site != nullptr && site->python != 0)) {
      explained += static_cast<double>(ns);
    }
  }
  for (const auto& [idle, sample] : done_) {
    if (idle->at.process != process || !Starts(sample->start_ns, query)) continue;
    ++samples[idle->cause].first;
    if (sample->python != 0) ++samples[idle->cause].second;
  }
  for (const auto& [cause, ns] : code) {
    const auto& [all, with_line] = samples[cause];
    if (all == 0) continue;
    explained += ns * static_cast<double>(with_line) / static_cast<double>(all);
  }
  return static_cast<uint64_t>(explained);
}

std::string GpuModel::GapText(const Idle& idle, GroupBy by) {
  const TestEvent* culprit = idle.culprit != nullptr ? idle.culprit : idle.after;
  return absl::StrCat(idle.cause, " ", ApiText(idle.culprit), " ",
                      SiteText(idle.before, by), " ", SiteText(idle.after, by), " ",
                      CulpritText(culprit, by));
}

GpuReport GpuModel::Report(const GpuQuery& query) const {
  GpuReport report;
  AddDoing(query, report);
  for (uint64_t process : {1, 2}) {
    if (query.process == 0 || query.process == process) {
      report.explained_ns += ExplainedOf(query, process);
    }
  }
  auto wanted = [&](uint64_t process) {
    return query.process == 0 || query.process == process;
  };
  for (const Stretch& s : traced_) {
    if (wanted(s.process)) report.traced_ns += Overlap(s.start_ns, s.end_ns, query);
  }
  for (const Idle& idle : idle_) {
    uint64_t overlap = Overlap(idle.at.start_ns, idle.at.end_ns, query);
    if (!wanted(idle.at.process) || overlap == 0) continue;
    report.idle_ns += overlap;
    std::string cause = absl::StrCat(idle.cause);
    std::string gap = GapText(idle, query.by);
    for (GpuRow* row : {&report.causes[cause], &report.gaps[gap]}) {
      row->count += Starts(idle.at.start_ns, query) ? 1 : 0;
      row->total_ns += overlap;
      row->max_ns = std::max(row->max_ns, idle.at.end_ns - idle.at.start_ns);
    }
    if (idle.cause == lull::v1::GAP_CAUSE_SYNC) report.wasted_ns += overlap;
  }
  for (const Cost& cost : costs_) {
    if (!wanted(cost.process) || !Starts(cost.sync.start_ns, query)) continue;
    GpuRow& row = report.syncs[CulpritText(&cost.sync, query.by)];
    ++row.count;
    row.total_ns += cost.sync.duration_ns;
    row.bytes += cost.needed_ns;
  }
  for (const Ran& ran : ran_) {
    if (!wanted(ran.process) || !Starts(ran.event->start_ns, query)) continue;
    const TestEvent& e = *ran.event;
    if (e.type == v1::EVENT_TYPE_GPU_KERNEL) {
      Count(report.kernels[KernelName(e.python)], e.duration_ns, 0);
    } else if (e.type == v1::EVENT_TYPE_GPU_GRAPH) {
      Count(report.kernels["CUDA graph"], e.duration_ns, 0);
    } else {
      GpuRow& row = report.copies[CopyText(e)];
      Count(row, e.duration_ns, GpuCopyView{e}.bytes());
      row.min_ns = row.max_ns = 0;  // not part of that report
    }
  }
  return report;
}

GpuReport FromReply(const lull::v1::ReportReply& reply, GroupBy by) {
  GpuReport report;
  report.traced_ns = reply.gpu().traced_ns();
  report.idle_ns = reply.gpu().idle_ns();
  report.explained_ns = reply.gpu().explained_ns();
  for (const auto& row : reply.gaps().causes()) {
    report.causes[absl::StrCat(static_cast<int>(row.cause()))] = {
        row.count(), row.total_ns(), 0, row.max_ns(), 0};
  }
  for (const auto& row : reply.gaps().gaps()) {
    // Samples say where the code itself was; else it is where the gap ended.
    const bool code = IsOfTheCode(row.cause());
    std::string culprit =
        by == lull::v1::GROUP_BY_STACK
            ? absl::StrCat(RowStack(row.stack()), "/", RowStack(row.native_stack()))
            : RowSite(code ? row.after() : row.culprit());
    std::string gap =
        absl::StrCat(static_cast<int>(row.cause()), " ", row.culprit_api(), " ",
                     RowSite(row.before()), " ", RowSite(row.after()), " ", culprit);
    for (const auto& line : row.doing()) {
      report.doing[absl::StrCat(gap, " doing ", RowSite(line.site()))] = {
          line.samples(),
          static_cast<uint64_t>(std::llround(1e4 * line.own().percent())), 0, 0,
          static_cast<uint64_t>(std::llround(1e4 * line.share().percent()))};
    }
    GpuRow& out = report.gaps[gap];
    out = {out.count + row.count(), out.total_ns + row.total_ns(), 0,
           std::max(out.max_ns, row.max_ns()), 0};
  }
  for (const auto& row : reply.kernels().kernels()) {
    report.kernels[row.name()] = {row.calls(), row.total_ns(), row.min_ns(),
                                  row.max_ns(), 0};
  }
  for (const auto& row : reply.kernels().copies()) {
    report.copies[absl::StrCat(row.direction(), "|", row.memory())] = {
        row.count(), row.total_ns(), 0, 0, row.bytes()};
  }
  for (const auto& row : reply.syncs().sync_points()) {
    report.wasted_ns += row.wasted_ns();
    if (row.judged_calls() == 0) continue;
    std::string site =
        by == lull::v1::GROUP_BY_STACK
            ? absl::StrCat(RowStack(row.stack()), "/", RowStack(row.native_stack()))
            : RowSite(row.site());
    report.syncs[site] = {row.judged_calls(), row.judged_blocked_ns(), 0, 0,
                          row.needed_ns()};
  }
  return report;
}

std::ostream& operator<<(std::ostream& out, const GpuRow& r) {
  return out << "{count " << r.count << " total " << r.total_ns << " min " << r.min_ns
             << " max " << r.max_ns << " bytes " << r.bytes << "}";
}

}  // namespace lull::test
