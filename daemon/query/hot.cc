#include "daemon/query/hot.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/base/status.h"
#include "daemon/query/gather.h"
#include "daemon/query/region_filter.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

using aggregate::Sampled;
using aggregate::SampleQuality;
using aggregate::SampleState;

// The three states, and what a newer relay may tell.
using ByState = std::array<uint64_t, 4>;

struct RoleSums {
  Sampled all;
  ByState state_ns = {};
  uint64_t no_python_ns = 0;
  uint64_t failed_ns = 0;
  uint64_t cut_ns = 0;
};

struct LineSums {
  Sampled total;
  Sampled self;
  ByState state_ns = {};  // of total
  uint64_t seen_in = 0;   // the look that counted it last
  uint32_t site = 0;      // of a node
};

// Role, then a frame, a function, or a stack; of stacks also whether they are cut: the
// same frames can be all there was, and all that is known.
struct LineKey {
  uint8_t role = 0;
  uint32_t id = 0;
  bool cut = false;
  // For the backward pass: a site or a stack of a node.
  bool node = false;
  friend auto operator<=>(const LineKey&, const LineKey&) = default;
};

class Samples {
 public:
  explicit Samples(View& view)
      : request_(view.request), names_(*view.names), stacks_(*view.stacks) {}

  void Add(const Series& series, const Cell& cell) {
    const auto role = static_cast<uint8_t>(aggregate::RoleOf(series));
    if (request_.has_role() && role != request_.role()) return;
    const SampleQuality quality = aggregate::QualityOf(series);
    const Sampled sampled = aggregate::SampledOf(cell);
    const auto state = static_cast<size_t>(aggregate::StateOf(series));
    RoleSums& sums = roles_[role];
    sums.all += sampled;
    sums.state_ns[state] += sampled.time_ns;
    const bool cut = quality == SampleQuality::kCut;
    const std::vector<uint32_t>& frames = stacks_.Frames(series.python_stack);
    if (!aggregate::HasStack(quality) || frames.empty()) {
      (quality == SampleQuality::kFailed || cut ? sums.failed_ns : sums.no_python_ns) +=
          sampled.time_ns;
      return;
    }
    if (cut) sums.cut_ns += sampled.time_ns;
    ++looks_;
    if (request_.group_by() == v1::GROUP_BY_STACK) {
      LineSums& line = lines_[{role, series.python_stack, cut}];
      Count(sampled, state, line);
      line.self += sampled;
      return;
    }
    for (uint32_t frame : frames) Count(sampled, state, lines_[{role, KeyOf(frame)}]);
    if (!cut) lines_[{role, KeyOf(frames.front())}].self += sampled;
  }

  // One of those that Add found without a stack: the node that it was at, and whoever
  // called backward().
  void AddOfTheEngine(const Series& series, const Cell& cell) {
    const auto role = static_cast<uint8_t>(aggregate::RoleOf(series));
    auto sums = roles_.find(role);
    if (sums == roles_.end() || series.python_stack == 0) return;
    const Sampled sampled = aggregate::SampledOf(cell);
    const auto state = static_cast<size_t>(aggregate::StateOf(series));
    uint64_t& without = aggregate::QualityOf(series) == SampleQuality::kFailed
                            ? sums->second.failed_ns
                            : sums->second.no_python_ns;
    without -= std::min(without, sampled.time_ns);
    ++looks_;
    const bool by_function = request_.group_by() == v1::GROUP_BY_FUNCTION;
    const uint32_t site = by_function ? series.function_site : series.line_site;
    const bool by_stack = request_.group_by() == v1::GROUP_BY_STACK;
    LineSums& line = lines_[{role, by_stack ? series.python_stack : site, false, true}];
    line.site = site;
    Count(sampled, state, line);
    line.self += sampled;
    if (by_stack) return;
    const std::vector<uint32_t>& frames = stacks_.Frames(series.python_stack);
    const size_t count = stacks_.BeforeForward(frames);
    for (size_t i = 1; i < count; ++i) {
      Count(sampled, state, lines_[{role, KeyOf(frames[i])}]);
    }
  }

  bool empty() const { return roles_.empty(); }

  void Fill(v1::Hot* reply) {
    for (const auto& [role, sums] : roles_) FillRole(role, sums, reply->add_roles());
    auto times = [](const LineSums& line) {
      return std::make_pair(line.self.time_ns, line.total.time_ns);
    };
    for (const auto* line : Highest(lines_, request_.top(), times)) {
      FillLine(line->first, line->second, reply->add_lines());
    }
  }

 private:
  uint32_t KeyOf(uint32_t frame) {
    return request_.group_by() == v1::GROUP_BY_FUNCTION ? stacks_.Function(frame)
                                                        : frame;
  }

  void Count(const Sampled& sampled, size_t state, LineSums& line) {
    if (std::exchange(line.seen_in, looks_) == looks_) return;
    line.total += sampled;
    line.state_ns[state] += sampled.time_ns;
  }

  static void FillRole(uint8_t role, const RoleSums& sums, v1::HotRole* out) {
    out->set_role(static_cast<v1::HostSampleRole>(role));
    out->set_samples(sums.all.samples);
    out->set_time_ns(sums.all.time_ns);
    out->set_running_ns(sums.state_ns[static_cast<size_t>(SampleState::kRunning)]);
    out->set_ready_ns(sums.state_ns[static_cast<size_t>(SampleState::kReady)]);
    out->set_blocked_ns(sums.state_ns[static_cast<size_t>(SampleState::kBlocked)]);
    out->set_no_python_ns(sums.no_python_ns);
    out->set_failed_ns(sums.failed_ns);
    out->set_cut_ns(sums.cut_ns);
  }

  void FillLine(const LineKey& key, const LineSums& line, v1::HotLine* out) {
    out->set_role(static_cast<v1::HostSampleRole>(key.role));
    if (request_.group_by() == v1::GROUP_BY_STACK) {
      const std::vector<uint32_t>& frames = stacks_.Frames(key.id);
      stacks_.FillSite(frames.front(), out->mutable_site());
      stacks_.FillStack(key.id, out->mutable_stack());
      const int count = static_cast<int>(stacks_.BeforeForward(frames));
      out->mutable_stack()->DeleteSubrange(count, out->stack_size() - count);
      out->set_cut(key.cut);
    } else if (!key.node) {
      stacks_.FillSite(key.id, out->mutable_site());
    }
    if (key.node) names_.FillSite(line.site, out->mutable_site());
    if (request_.group_by() == v1::GROUP_BY_FUNCTION) {
      out->mutable_site()->clear_line();
    }
    out->set_samples(line.total.samples);
    out->set_self_samples(line.self.samples);
    out->set_total_ns(line.total.time_ns);
    out->set_self_ns(line.self.time_ns);
    const Sampled& whole = roles_[key.role].all;
    if (aggregate::IsEnough(whole)) {
      SetShare(line.total, whole, out->mutable_total());
      SetShare(line.self, whole, out->mutable_self());
    }
    out->set_running_ns(line.state_ns[static_cast<size_t>(SampleState::kRunning)]);
    out->set_ready_ns(line.state_ns[static_cast<size_t>(SampleState::kReady)]);
    out->set_blocked_ns(line.state_ns[static_cast<size_t>(SampleState::kBlocked)]);
  }

  const v1::ReportRequest& request_;
  Names& names_;
  Stacks& stacks_;
  uint64_t looks_ = 0;
  std::map<uint8_t, RoleSums> roles_;
  std::map<LineKey, LineSums> lines_;
};

// Why no process has a sample.
std::string WhyNoSamples(const storage::JobRow& job,
                         const std::vector<ProcessSums>& processes,
                         const v1::Hot& hot) {
  if (job.info.no_host_samples()) return "the job ran with --no-samples";
  if (hot.counters().taken() > 0) return "none lies in what is shown";
  if (hot.denied_processes() > 0) {
    return "lull may not read the memory of its processes: they belong to somebody "
           "else, or have made themselves unreadable (prctl PR_SET_DUMPABLE)";
  }
  if (hot.unreadable_processes() > 0) {
    return "this version of lull does not know the interpreter of its processes";
  }
  if (processes.empty()) return "no process has reported";
  if (processes.front().recorded.never()) {
    return "the job was asleep all the time (lull arm wakes one up)";
  }
  const bool python =
      std::any_of(processes.begin(), processes.end(), [](const ProcessSums& sums) {
        return !sums.process.info.python_version().empty();
      });
  if (!python) return "none of its processes runs Python";
  return "an older lull recorded it, or it was over before the first sample was due";
}

}  // namespace

void SetShare(const Sampled& part, const Sampled& whole, v1::SampledShare* out) {
  const aggregate::Share share = aggregate::ShareOf(part, whole);
  out->set_percent(share.percent);
  out->set_low_percent(share.low);
  out->set_high_percent(share.high);
}

absl::Status FillHot(View& view, v1::ReportReply* reply) {
  LULL_ASSIGN_OR_RETURN(const auto processes, SampledProcesses(view));
  v1::Hot* hot = reply->mutable_hot();
  RegionFilter filter(view.request.region(), *view.names);
  hot->set_region(view.request.region());
  Samples samples(view);
  for (const ProcessSums& sums : processes) {
    const v1::HostSampleCounters& counters = sums.process.counters.host_samples();
    Gather(counters, hot->mutable_counters());
    if (counters.access() == v1::HOST_SAMPLE_ACCESS_DENIED) {
      hot->set_denied_processes(hot->denied_processes() + 1);
    }
    if (counters.access() == v1::HOST_SAMPLE_ACCESS_LAYOUT) {
      hot->set_unreadable_processes(hot->unreadable_processes() + 1);
    }
    filter.ForEach(sums, EventType::kHostSample,
                   [&](const Series& series, const Cell& cell) {
                     if (cell.count > 0) samples.Add(series, cell);
                   });
    filter.ForEach(sums, EventType::kEngineSample,
                   [&](const Series& series, const Cell& cell) {
                     if (cell.count > 0) samples.AddOfTheEngine(series, cell);
                   });
  }
  if (samples.empty() && !filter.all()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no sample of a host thread lies in the region ", view.request.region()));
  }
  if (samples.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("there are no samples of host threads: ",
                     WhyNoSamples(view.job, processes, *hot)));
  }
  samples.Fill(hot);
  return view.stacks->status();
}

}  // namespace lull::query
