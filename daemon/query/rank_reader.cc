#include "daemon/query/rank_reader.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "daemon/aggregate/control_step.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/aggregate/kernel_names.h"
#include "daemon/base/status.h"
#include "daemon/query/rank_events.h"

namespace lull::query {
namespace {

using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

void ByTime(std::vector<Event>& events) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.start_ns < b.start_ns;
  });
}

}  // namespace

bool IsCommunicating(const Series& series, Names& names) {
  if (series.type != EventType::kGpuKernel) return false;
  const uint32_t name = names.Kernel(aggregate::KernelOf(series)).name;
  return aggregate::IsCommunicationKernel(names.KernelName(name));
}

// The thread that waits for other ranks, and what else it did.
absl::Status RankReader::ReadHost(const RankSpan& span, RankPart& part, RankOf& rank,
                                  ranks::Rank& out) {
  struct Told {
    Event event;
    const Series* series;
  };
  std::vector<Told> told;
  std::map<uint32_t, uint64_t> waited_ns;  // by thread
  out.clock = part.clock;
  LULL_RETURN_IF_ERROR(reader_.events().Read(
      rank.process.id, span.since_ns, span.until_ns, [&](const Event& event) {
        if (event.series >= rank.series.size()) return;
        const Series& series = rank.series[event.series];
        if (aggregate::IsRestAlone(series)) return;
        if (IsCollective(series)) waited_ns[event.tid] += event.duration_ns;
        if (IsCollective(series) || series.type == EventType::kStep ||
            series.type == EventType::kHostSample ||
            *CauseOf(series, event.duration_ns) != '\0') {
          told.push_back({event, &series});
        }
      }));
  const auto most = std::max_element(
      waited_ns.begin(), waited_ns.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  const uint32_t main = most == waited_ns.end() ? 0 : most->first;
  std::stable_sort(told.begin(), told.end(), [](const Told& a, const Told& b) {
    // What encloses another comes first.
    return a.event.start_ns != b.event.start_ns
               ? a.event.start_ns < b.event.start_ns
               : a.event.duration_ns > b.event.duration_ns;
  });
  for (const Told& one : told) {
    const Event& event = one.event;
    if (one.series->type == EventType::kStep) {
      out.steps.push_back(part.Common(event.start_ns));
      if (event.duration_ns > 0) rank.step_ns.push_back(event.duration_ns);
    } else if (event.tid != main) {
      continue;
    } else if (one.series->type == EventType::kHostSample) {
      AddLook(part, *one.series, event, out);
    } else if (IsCollective(*one.series)) {
      AddWait(part, *one.series, event, out);
    } else {
      const char* cause = CauseOf(*one.series, event.duration_ns);
      // A collection lies where garbage was made enough, not at its line.
      const uint32_t line = one.series->type == EventType::kGcPause
                                ? 0
                                : causes_.LineOf(part, one.series->line_site);
      const uint32_t what =
          MayBeACollective(*one.series, *part.names) ? 0 : causes_.Number(cause, line);
      out.spent.push_back(
          part.Common(event.start_ns, event.start_ns + event.duration_ns, what));
    }
  }
  return absl::OkStatus();
}

// What was traced of its device.
absl::Status RankReader::ReadDevice(const RankSpan& span, RankPart& part, RankOf& rank,
                                    ranks::Rank& out) {
  DeviceRank& device = rank.device;
  std::vector<Event> looks, steps;
  std::vector<bool> communicates;
  for (const Series& series : rank.series) {
    communicates.push_back(IsCommunicating(series, *part.names));
  }
  LULL_RETURN_IF_ERROR(reader_.events().Read(
      rank.process.id, span.since_ns, span.until_ns, [&](const Event& event) {
        if (event.series >= rank.series.size()) return;
        const Series& series = rank.series[event.series];
        if (series.type == EventType::kHostSample) {
          looks.push_back(event);
        } else if (series.type == EventType::kStep) {
          if (!aggregate::IsRestAlone(series)) steps.push_back(event);
        } else {
          device.Add(event, series, communicates[event.series]);
        }
      }));
  device.Finish();
  if (device.several_devices()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", rank.process.info.rank(),
        " has worked on several GPUs: lull compares ranks of one GPU each"));
  }
  ByTime(looks);
  ByTime(steps);
  for (const Event& look : looks) {
    if (look.tid == device.idle_thread()) {
      AddLook(part, rank.series[look.series], look, out);
    }
  }
  for (const Event& step : steps) {
    if (step.duration_ns > 0) rank.step_ns.push_back(step.duration_ns);
    if (device.IsTraced(step.start_ns)) {
      out.steps.push_back(part.Common(step.start_ns));
    }
  }
  return absl::OkStatus();
}

void RankReader::AddWait(RankPart& part, const Series& series, const Event& event,
                         ranks::Rank& out) {
  const ranks::Stretch wait =
      part.Common(event.start_ns, event.start_ns + event.duration_ns,
                  causes_.LineOf(part, series.line_site));
  if (!out.waits.empty() && out.waits.back().end_ns > wait.start_ns) return;
  out.waits.push_back(wait);
}

void RankReader::AddLook(RankPart& part, const Series& series, const Event& event,
                         ranks::Rank& out) {
  if (!aggregate::HasStack(aggregate::QualityOf(series))) return;
  const bool ready = aggregate::StateOf(series) == aggregate::SampleState::kReady;
  out.looks.push_back(
      {part.Common(event.start_ns),
       ready ? causes_.Number("run_queue", 0)
             : causes_.Number("host_code", causes_.LineOf(part, series.line_site))});
}

}  // namespace lull::query
