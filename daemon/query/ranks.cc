#include "daemon/ranks/ranks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/base/median.h"
#include "daemon/base/status.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

using aggregate::WaitKind;

// So many events are read for one answer, at 0.16 us each; for an overview, which may
// be asked for every second, fewer.
constexpr uint64_t kMostEvents = 4'000'000;
constexpr uint64_t kMostEventsOfAnOverview = 500'000;
// To a tenth of a millisecond of a day.
constexpr int kBisections = 30;
// Of one host: each is compared with each other one.
constexpr int kMostRanks = 1024;

bool IsCollective(const Series& series) {
  return series.type == EventType::kHostWait &&
         aggregate::WaitKindOf(series) == WaitKind::kComm;
}

// A condition of which the native stack is not known, that of a collective perhaps: the
// overhead budget takes stacks away, and an older shim took none.
bool MayBeACollective(const Series& series, Names& names) {
  return series.type == EventType::kHostWait && series.native_stack == 0 &&
         aggregate::WaitKindOf(series) == WaitKind::kLock &&
         absl::StartsWith(names.Api(series.api), "pthread_cond_");
}

// What a thread was in for at least so long that it may explain a late rank; "" else.
const char* CauseOf(const Series& series, uint64_t duration_ns) {
  switch (series.type) {
    case EventType::kHostWait:
    case EventType::kScope:
      return aggregate::IsWait(series) && !IsCollective(series)
                 ? aggregate::WaitKindName(aggregate::WaitKindOf(series))
                 : "";
    case EventType::kGcPause:
      return "gc";
    case EventType::kSync:
      return "sync";
    case EventType::kTorchMemory:
      return duration_ns > aggregate::kSlowAllocationNs ? "allocator" : "";
    case EventType::kDeviceMemory:
      return "allocator";
    default:
      return "";
  }
}

struct RankOf {
  storage::ProcessRow process;
  std::vector<Series> series;  // by id
  std::vector<uint64_t> step_ns;
};

class Telling {
 public:
  Telling(View& view, v1::Ranks* reply) : view_(view), reply_(*reply) {}

  absl::Status Fill() {
    LULL_RETURN_IF_ERROR(FindRanks());
    LULL_RETURN_IF_ERROR(AreAll());
    LULL_RETURN_IF_ERROR(ChooseRange());
    std::vector<ranks::Rank> ranks(ranks_.size());
    for (size_t i = 0; i < ranks_.size(); ++i) {
      LULL_RETURN_IF_ERROR(Read(ranks_[i], ranks[i]));
    }
    Tell(ranks::WhoWaitedForWhom(ranks));
    return absl::OkStatus();
  }

 private:
  // All ranks are needed, also where one is asked for: it waited for the others.
  absl::Status FindRanks() {
    const storage::Catalogue& catalogue = view_.reader->catalogue();
    LULL_ASSIGN_OR_RETURN(auto processes,
                          catalogue.All<storage::ProcessRow>(view_.job.id));
    for (storage::ProcessRow& process : processes) {
      if (process.info.worker_of() != 0) continue;
      LULL_ASSIGN_OR_RETURN(auto rows, catalogue.All<storage::SeriesRow>(process.id));
      RankOf rank;
      bool collectives = false;
      for (const storage::SeriesRow& row : rows) {
        if (rank.series.size() <= row.id) rank.series.resize(row.id + 1);
        rank.series[row.id] = row.series;
        collectives = collectives || IsCollective(row.series);
      }
      if (!collectives) continue;
      rank.process = std::move(process);
      ranks_.push_back(std::move(rank));
    }
    std::stable_sort(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) {
      return a.process.info.rank() < b.process.info.rank();
    });
    return absl::OkStatus();
  }

  // Who came last is known only if everybody is.
  absl::Status AreAll() const {
    if (view_.job.info.has_imported()) {
      return absl::FailedPreconditionError(
          "nobody knows how far the clocks of an imported trace's ranks are apart");
    }
    if (ranks_.empty()) {
      return absl::FailedPreconditionError(
          "no process waited for another rank: waits of gloo and c10d on the host are "
          "known, those for NCCL or MPI are not");
    }
    const v1::ProcessInfo& first = ranks_.front().process.info;
    if (first.rank() < 0) {
      return absl::FailedPreconditionError(
          "processes wait for other ranks, and do not tell theirs: no launcher has put "
          "RANK or the like into their environment");
    }
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const v1::ProcessInfo& info = ranks_[i].process.info;
      if (i > 0 && info.rank() == ranks_[i - 1].process.info.rank()) {
        return absl::FailedPreconditionError(
            absl::StrCat("rank ", info.rank(),
                         " was more than one process: restarts are not told apart"));
      }
      if (info.world_size() != first.world_size()) {
        return absl::FailedPreconditionError(
            "ranks do not agree on how many they are (WORLD_SIZE)");
      }
    }
    if (first.world_size() > kMostRanks) {
      return absl::FailedPreconditionError(
          absl::StrCat("lull compares ", kMostRanks, " ranks at most, and these are ",
                       first.world_size(), " (WORLD_SIZE)"));
    }
    if (first.world_size() == 0) {
      return absl::FailedPreconditionError(
          "nobody knows how many ranks there are: no launcher has put WORLD_SIZE or "
          "the like into their environment");
    }
    if (static_cast<size_t>(first.world_size()) != ranks_.size() || ranks_.size() < 2) {
      return absl::FailedPreconditionError(absl::StrCat(
          ranks_.size(), " of ", first.world_size(),
          " ranks waited in what lull has recorded here: whom they waited for may be "
          "among the others"));
    }
    if (ranks_.back().process.info.rank() >= first.world_size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", ranks_.back().process.info.rank(), " is none of ",
                       first.world_size(), " ranks (WORLD_SIZE)"));
    }
    return absl::OkStatus();
  }

  // The newest part where it has too many events. They need not be spread evenly: a job
  // may have slept.
  absl::Status ChooseRange() {
    range_ =
        PhaseOf(view_, view_.setup_ns != 0 ? std::optional<uint64_t>(view_.setup_ns)
                                           : std::nullopt);
    range_.until = std::min(
        range_.until,
        aggregate::AfterStart(view_.job.last_event_ns, view_.job.info.start_ns()) + 1);
    range_.since = std::min(range_.since, range_.until);
    const double most = view_.overview ? kMostEventsOfAnOverview : kMostEvents;
    LULL_ASSIGN_OR_RETURN(double events, EventsSince(range_.since));
    if (events > most) {
      uint64_t few = range_.until;  // events from then on
      for (int i = 0; i < kBisections; ++i) {
        const uint64_t middle = range_.since + (few - range_.since) / 2;
        LULL_ASSIGN_OR_RETURN(events, EventsSince(middle));
        (events > most ? range_.since : few) = middle;
      }
      range_.since = few;
      reply_.set_cut(true);
    }
    reply_.set_start_ns(range_.since);
    reply_.set_end_ns(range_.until);
    return absl::OkStatus();
  }

  absl::StatusOr<double> EventsSince(uint64_t since) const {
    double events = 0;
    for (const RankOf& rank : ranks_) {
      LULL_ASSIGN_OR_RETURN(
          double some,
          view_.reader->events().Estimate(rank.process.id, Absolute(view_.job, since),
                                          Absolute(view_.job, range_.until)));
      events += some;
    }
    return events;
  }

  // The thread that waits for other ranks, and what else it did.
  absl::Status Read(RankOf& rank, ranks::Rank& out) {
    struct Told {
      Event event;
      const Series* series;
    };
    std::vector<Told> told;
    std::map<uint32_t, uint64_t> waited_ns;  // by thread
    LULL_RETURN_IF_ERROR(view_.reader->events().Read(
        rank.process.id, Absolute(view_.job, range_.since),
        Absolute(view_.job, range_.until), [&](const Event& event) {
          if (event.series >= rank.series.size()) return;
          const Series& series = rank.series[event.series];
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
        out.steps.push_back(event.start_ns);
        if (event.duration_ns > 0) rank.step_ns.push_back(event.duration_ns);
      } else if (event.tid != main) {
        continue;
      } else if (one.series->type == EventType::kHostSample) {
        AddLook(*one.series, event, out);
      } else if (IsCollective(*one.series)) {
        AddWait(*one.series, event, out);
      } else {
        const char* cause = CauseOf(*one.series, event.duration_ns);
        // A collection lies where garbage was made enough, not at its line.
        const uint32_t site =
            one.series->type == EventType::kGcPause ? 0 : one.series->line_site;
        out.spent.push_back(
            {event.start_ns, event.start_ns + event.duration_ns,
             MayBeACollective(*one.series, *view_.names) ? 0 : Number(cause, site)});
      }
    }
    return absl::OkStatus();
  }

  static void AddWait(const Series& series, const Event& event, ranks::Rank& out) {
    const uint64_t end = event.start_ns + event.duration_ns;
    if (!out.waits.empty() && out.waits.back().end_ns > event.start_ns) return;
    out.waits.push_back({event.start_ns, end, series.line_site});
  }

  void AddLook(const Series& series, const Event& event, ranks::Rank& out) {
    if (!aggregate::HasStack(aggregate::QualityOf(series))) return;
    const bool ready = aggregate::StateOf(series) == aggregate::SampleState::kReady;
    out.looks.push_back({event.start_ns, ready
                                             ? Number("run_queue", 0)
                                             : Number("host_code", series.line_site)});
  }

  // Of a cause at a line, the same for all ranks.
  uint32_t Number(const std::string& cause, uint32_t site) {
    const auto [it, fresh] = numbers_.try_emplace({cause, site}, 0);
    if (fresh) {
      causes_.push_back(it->first);
      it->second = static_cast<uint32_t>(causes_.size());
    }
    return it->second;
  }

  void Tell(const ranks::Story& story) {
    // One relay, one host, one CLOCK_MONOTONIC: error_ns is 0.
    reply_.set_error_kind(v1::CLOCK_ERROR_KIND_BOUND);
    reply_.set_world_size(static_cast<uint32_t>(ranks_.size()));
    reply_.set_collectives(story.collectives);
    reply_.set_steps(story.steps);
    reply_.set_unexplained_ns(story.unexplained_ns);
    reply_.set_unmatched_ns(story.unmatched_ns);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const storage::ProcessRow& process = ranks_[i].process;
      if (view_.request.has_rank() && process.info.rank() != view_.request.rank()) {
        continue;
      }
      v1::RankRow* row = reply_.add_ranks();
      row->set_rank(process.info.rank());
      row->set_host(view_.job.info.host());
      row->set_pid(process.info.pid());
      row->set_step_ns(LowerMedian(ranks_[i].step_ns));
      row->set_late_steps(story.ranks[i].late_steps);
      row->set_waited_ns(story.ranks[i].waited_ns);
      for (const ranks::Cause& cause : story.ranks[i].causes) {
        row->set_cost_to_others_ns(row->cost_to_others_ns() + cause.cost_ns);
        TellCause(cause, row->add_culprits());
      }
    }
    std::stable_sort(reply_.mutable_ranks()->begin(), reply_.mutable_ranks()->end(),
                     [](const auto& a, const auto& b) {
                       return a.cost_to_others_ns() > b.cost_to_others_ns();
                     });
    Cut(view_.request.top(), reply_.mutable_ranks());
  }

  void TellCause(const ranks::Cause& cause, v1::LateCause* out) {
    const auto& [name, site] = cause.what == 0 ? kOwnCode : causes_[cause.what - 1];
    out->set_cause(name);
    if (site != 0) view_.names->FillSite(site, out->mutable_site());
    out->set_steps(cause.steps);
    out->set_total_ns(cause.late_ns);
    out->set_cost_ns(cause.cost_ns);
  }

  using NamedCause = std::pair<std::string, uint32_t>;  // with the site
  static inline const NamedCause kOwnCode{"host_code", 0};

  View& view_;
  v1::Ranks& reply_;
  TimeRange range_;
  std::vector<RankOf> ranks_;
  std::map<NamedCause, uint32_t> numbers_;
  std::vector<NamedCause> causes_;  // by number - 1
};

}  // namespace

bool HasCollectives(const View& view) {
  return std::any_of(
      view.processes.begin(), view.processes.end(), [](const ProcessSums& sums) {
        return std::any_of(sums.series.begin(), sums.series.end(), IsCollective);
      });
}

absl::Status FillRanks(View& view, v1::ReportReply* reply) {
  v1::Ranks told;
  LULL_RETURN_IF_ERROR(Telling(view, &told).Fill());
  *reply->mutable_ranks() = std::move(told);
  return absl::OkStatus();
}

}  // namespace lull::query
