#include "daemon/ranks/ranks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/base/median.h"
#include "daemon/base/status.h"
#include "daemon/query/part_clocks.h"
#include "daemon/query/rank_census.h"
#include "daemon/query/rank_events.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

// So many events are read for one answer, at 0.16 us each; for an overview, which may
// be asked for every second, fewer.
constexpr uint64_t kMostEvents = 4'000'000;
constexpr uint64_t kMostEventsOfAnOverview = 500'000;
// To a tenth of a millisecond of a day.
constexpr int kBisections = 30;
// What one relay told; each has a clock, and numbers of its own for sites and APIs.
struct Part {
  storage::JobRow job;
  Names* names = nullptr;
  std::unique_ptr<Names> own_names;  // those of the job that is shown are the view's
  const ranks::HostClock* clock = nullptr;  // nullptr: all have one
  std::map<uint32_t, uint32_t> lines;       // by site: the number that all parts use

  uint64_t Common(uint64_t host_ns) const {
    return clock == nullptr ? host_ns : clock->ToCommon(host_ns);
  }
};

struct RankOf {
  size_t part = 0;
  storage::ProcessRow process;
  std::vector<Series> series;  // by id
  std::vector<uint64_t> step_ns;
};

class Telling {
 public:
  Telling(View& view, v1::Ranks* reply) : view_(view), reply_(*reply) {}

  absl::Status Fill() {
    LULL_RETURN_IF_ERROR(FindParts());
    for (size_t i = 0; i < parts_.size(); ++i) LULL_RETURN_IF_ERROR(FindRanks(i));
    std::stable_sort(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) {
      return a.process.info.rank() < b.process.info.rank();
    });
    LULL_RETURN_IF_ERROR(AreAllKnown());
    LULL_RETURN_IF_ERROR(ChooseClocks());
    LULL_RETURN_IF_ERROR(ChooseRange());
    std::vector<ranks::Rank> ranks(ranks_.size());
    for (size_t i = 0; i < ranks_.size(); ++i) {
      LULL_RETURN_IF_ERROR(Read(ranks_[i], ranks[i]));
    }
    reply_.set_error_ns(WorstErrorNs(ranks));
    Tell(ranks::WhoWaitedForWhom(ranks));
    for (const Part& part : parts_) LULL_RETURN_IF_ERROR(part.names->status());
    return absl::OkStatus();
  }

 private:
  absl::Status FindParts() {
    LULL_ASSIGN_OR_RETURN(auto rows, view_.run_parts->Of(view_.job));
    for (storage::JobRow& job : rows) {
      Part& part = parts_.emplace_back();
      part.job = std::move(job);
      part.names = view_.names.get();
      if (part.job.id == view_.job.id) continue;
      part.own_names = std::make_unique<Names>(*view_.reader, part.job.id);
      part.names = part.own_names.get();
    }
    return absl::OkStatus();
  }

  absl::Status AreAllKnown() const {
    const absl::Status all = AreAll(view_.job, infos());
    LULL_ASSIGN_OR_RETURN(const bool in_doubt, view_.run_parts->IsInDoubt(view_.job));
    if (all.ok() || !in_doubt) return all;
    return absl::FailedPreconditionError(
        absl::StrCat("several jobs that their launcher calls ", view_.job.run,
                     " went on at one time, and nothing says which hosts belong "
                     "together: give each a name of its own (--run-id)"));
  }

  // All ranks are needed, also where one is asked for: it waited for the others.
  absl::Status FindRanks(size_t part) {
    const storage::Catalogue& catalogue = view_.reader->catalogue();
    LULL_ASSIGN_OR_RETURN(auto processes,
                          catalogue.All<storage::ProcessRow>(parts_[part].job.id));
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
      rank.part = part;
      rank.process = std::move(process);
      ranks_.push_back(std::move(rank));
    }
    return absl::OkStatus();
  }

  // Parts of one clock need none. Others are compared by a clock that was read beside
  // each of theirs: the collector's.
  absl::Status ChooseClocks() {
    if (parts_.size() == 1) return absl::OkStatus();
    LULL_ASSIGN_OR_RETURN(PartClocks clocks, PartClocks::Load(*view_.reader, jobs()));
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].clock = clocks.Of(i);
    clocks_ = std::move(clocks);
    return absl::OkStatus();
  }

  std::vector<const v1::ProcessInfo*> infos() const {
    std::vector<const v1::ProcessInfo*> all;
    for (const RankOf& rank : ranks_) all.push_back(&rank.process.info);
    return all;
  }

  std::vector<const storage::JobRow*> jobs() const {
    std::vector<const storage::JobRow*> all;
    for (const Part& part : parts_) all.push_back(&part.job);
    return all;
  }

  // The clock of a part `after_start` ns after the start of the job that is shown.
  uint64_t AbsoluteOf(const Part& part, uint64_t after_start) const {
    const uint64_t shown_ns = Absolute(view_.job, after_start);
    if (part.clock == nullptr) return shown_ns;
    const auto shown = std::find_if(
        parts_.begin(), parts_.end(),
        [this](const Part& other) { return other.job.id == view_.job.id; });
    if (part.clock == shown->clock) return shown_ns;
    return part.clock->FromCommon(shown->Common(shown_ns));
  }

  // How much two ranks may be farther apart than it seems, at most.
  static uint64_t WorstErrorNs(const std::vector<ranks::Rank>& ranks) {
    std::map<const ranks::HostClock*, uint64_t> most;
    for (const ranks::Rank& rank : ranks) {
      if (rank.clock == nullptr) return 0;
      uint64_t& error_ns = most[rank.clock];
      for (const ranks::Stretch& wait : rank.waits) {
        error_ns = std::max(error_ns, rank.clock->ErrorAt(wait.start_ns));
      }
    }
    std::vector<uint64_t> errors;
    for (const auto& [clock, error_ns] : most) errors.push_back(error_ns);
    std::sort(errors.rbegin(), errors.rend());
    return errors.size() < 2 ? 0 : errors[0] + errors[1];
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
      const Part& part = parts_[rank.part];
      LULL_ASSIGN_OR_RETURN(double some, view_.reader->events().Estimate(
                                             rank.process.id, AbsoluteOf(part, since),
                                             AbsoluteOf(part, range_.until)));
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
    Part& part = parts_[rank.part];
    out.clock = part.clock;
    LULL_RETURN_IF_ERROR(view_.reader->events().Read(
        rank.process.id, AbsoluteOf(part, range_.since), AbsoluteOf(part, range_.until),
        [&](const Event& event) {
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
                                  : LineOf(part, one.series->line_site);
        out.spent.push_back(
            {part.Common(event.start_ns),
             part.Common(event.start_ns + event.duration_ns),
             MayBeACollective(*one.series, *part.names) ? 0 : Number(cause, line)});
      }
    }
    return absl::OkStatus();
  }

  void AddWait(Part& part, const Series& series, const Event& event, ranks::Rank& out) {
    const uint64_t start = part.Common(event.start_ns);
    const uint64_t end = part.Common(event.start_ns + event.duration_ns);
    if (!out.waits.empty() && out.waits.back().end_ns > start) return;
    out.waits.push_back({start, end, LineOf(part, series.line_site)});
  }

  void AddLook(Part& part, const Series& series, const Event& event, ranks::Rank& out) {
    if (!aggregate::HasStack(aggregate::QualityOf(series))) return;
    const bool ready = aggregate::StateOf(series) == aggregate::SampleState::kReady;
    out.looks.push_back({part.Common(event.start_ns),
                         ready ? Number("run_queue", 0)
                               : Number("host_code", LineOf(part, series.line_site))});
  }

  // The number of a line, the same for all ranks: that of its site where there is one
  // part.
  uint32_t LineOf(Part& part, uint32_t site) {
    if (parts_.size() == 1 || site == 0) return site;
    const auto [it, fresh] = part.lines.try_emplace(site, 0);
    if (!fresh) return it->second;
    v1::Site told;
    part.names->FillSite(site, &told);
    const auto [line, first] =
        lines_.try_emplace({told.file(), told.line(), told.function()},
                           static_cast<uint32_t>(sites_.size() + 1));
    if (first) sites_.push_back(std::move(told));
    it->second = line->second;
    return it->second;
  }

  void FillSite(uint32_t line, v1::Site* site) const {
    if (parts_.size() == 1) {
      view_.names->FillSite(line, site);
    } else {
      *site = sites_[line - 1];
    }
  }

  // Of a cause at a line, the same for all ranks.
  uint32_t Number(const std::string& cause, uint32_t line) {
    const auto [it, fresh] = numbers_.try_emplace({cause, line}, 0);
    if (fresh) {
      causes_.push_back(it->first);
      it->second = static_cast<uint32_t>(causes_.size());
    }
    return it->second;
  }

  void Tell(const ranks::Story& story) {
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
      row->set_host(parts_[ranks_[i].part].job.info.host());
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
    const auto& [name, line] = cause.what == 0 ? kOwnCode : causes_[cause.what - 1];
    out->set_cause(name);
    if (line != 0) FillSite(line, out->mutable_site());
    out->set_steps(cause.steps);
    out->set_total_ns(cause.late_ns);
    out->set_cost_ns(cause.cost_ns);
  }

  using NamedCause = std::pair<std::string, uint32_t>;  // with the line
  static inline const NamedCause kOwnCode{"host_code", 0};

  View& view_;
  v1::Ranks& reply_;
  TimeRange range_;
  std::vector<Part> parts_;
  PartClocks clocks_;
  std::vector<RankOf> ranks_;
  std::map<std::tuple<std::string, int32_t, std::string>, uint32_t> lines_;
  std::vector<v1::Site> sites_;  // by number - 1 of lines_
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
