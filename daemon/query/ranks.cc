#include "daemon/ranks/ranks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/median.h"
#include "daemon/base/status.h"
#include "daemon/query/device_waits.h"
#include "daemon/query/late_causes.h"
#include "daemon/query/part_clocks.h"
#include "daemon/query/rank_census.h"
#include "daemon/query/rank_events.h"
#include "daemon/query/rank_reader.h"
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
// Kernels of one collective end within so much, on the clock of their host: 1 to 7 us
// were seen on eight V100, and CUPTI's conversion to the host's clock is good to 1 to 5
// us.
constexpr uint64_t kEndsApartNs = 20'000;
// What the time looked at is cut into, for who was late when.
constexpr uint64_t kStretches = 120;

class Telling {
 public:
  Telling(View& view, v1::Ranks* reply) : view_(view), reply_(*reply) {}

  absl::Status Fill() {
    LULL_RETURN_IF_ERROR(FindParts());
    for (size_t i = 0; i < parts_.size(); ++i) LULL_RETURN_IF_ERROR(FindRanks(i));
    // NCCL's say more than what hosts wait for beside them.
    on_device_ = std::any_of(ranks_.begin(), ranks_.end(),
                             [](const RankOf& rank) { return rank.on_device; });
    // Of a trace there is nothing else to compare them by.
    if (on_device_ || view_.job.info.has_imported()) {
      std::erase_if(ranks_, [](const RankOf& rank) { return !rank.on_device; });
    }
    std::stable_sort(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) {
      return a.process.info.rank() < b.process.info.rank();
    });
    LULL_RETURN_IF_ERROR(AreAllKnown());
    for (size_t i = 0; i < ranks_.size() && !on_device_; ++i)
      LULL_RETURN_IF_ERROR(
          AreAllRecorded(parts_[ranks_[i].part].job, ranks_[i].process));
    LULL_RETURN_IF_ERROR(ChooseClocks());
    LULL_RETURN_IF_ERROR(ChooseRange());
    std::vector<ranks::Rank> ranks(ranks_.size());
    for (size_t i = 0; i < ranks_.size(); ++i) {
      LULL_RETURN_IF_ERROR(reader_.Read(SpanOf(ranks_[i]), on_device_,
                                        parts_[ranks_[i].part], ranks_[i], ranks[i]));
    }
    if (on_device_) LULL_RETURN_IF_ERROR(FillWaits(ranks));
    reply_.set_error_ns(WorstErrorNs(ranks));
    Tell(ranks::WhoWaitedForWhom(ranks));
    for (const RankPart& part : parts_) LULL_RETURN_IF_ERROR(part.names->status());
    return absl::OkStatus();
  }

 private:
  absl::Status FindParts() {
    LULL_ASSIGN_OR_RETURN(auto rows, view_.run_parts->Of(view_.job));
    for (storage::JobRow& job : rows) {
      RankPart& part = parts_.emplace_back();
      part.job = std::move(job);
      part.names = view_.names.get();
      if (part.job.id == view_.job.id) continue;
      own_names_.push_back(std::make_unique<Names>(*view_.reader, part.job.id));
      part.names = own_names_.back().get();
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
        rank.on_device =
            rank.on_device || IsCommunicating(row.series, *parts_[part].names);
      }
      if (!collectives && !rank.on_device) continue;
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
    for (const RankPart& part : parts_) all.push_back(&part.job);
    return all;
  }

  // The clock of a part `after_start` ns after the start of the job that is shown.
  uint64_t AbsoluteOf(const RankPart& part, uint64_t after_start) const {
    const uint64_t shown_ns = Absolute(view_.job, after_start);
    if (part.clock == nullptr) return shown_ns;
    const auto shown = std::find_if(
        parts_.begin(), parts_.end(),
        [this](const RankPart& other) { return other.job.id == view_.job.id; });
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
      const RankPart& part = parts_[rank.part];
      LULL_ASSIGN_OR_RETURN(double some, view_.reader->events().Estimate(
                                             rank.process.id, AbsoluteOf(part, since),
                                             AbsoluteOf(part, range_.until)));
      events += some;
    }
    return events;
  }

  RankSpan SpanOf(const RankOf& rank) const {
    const RankPart& part = parts_[rank.part];
    return {AbsoluteOf(part, range_.since), AbsoluteOf(part, range_.until)};
  }

  absl::Status FillWaits(std::vector<ranks::Rank>& ranks) {
    std::vector<std::vector<ranks::Ended>> kernels;
    for (const RankOf& rank : ranks_) kernels.push_back(KernelsOf(rank));
    ranks::Together together;
    if (view_.job.info.has_imported()) {
      LULL_ASSIGN_OR_RETURN(together, InOrder(kernels));
    } else if (std::any_of(parts_.begin(), parts_.end(), [&](const RankPart& part) {
                 return part.clock != parts_.front().clock;
               })) {
      return absl::FailedPreconditionError(
          "collectives of NCCL are compared on one host alone: their kernels are told "
          "by ending together, and clocks of hosts are not that close");
    } else {
      together = ranks::ByEnds(kernels, kEndsApartNs, TracedTimes());
    }
    uint64_t error_ns = (together.spread_ns + 1) / 2;  // of two ranks it is the whole
    if (!spread_ns_) error_ns = std::max(error_ns, kDeviceTimeErrorNs);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const RankOf& rank = ranks_[i];
      for (size_t k = 0; k < kernels[i].size(); ++k) {
        if (together.ranks[i][k].collective != 0) continue;
        unknown_ns_ += kernels[i][k].end_ns - kernels[i][k].start_ns;
      }
      device_waits_.Fill(rank.device, rank.series, kernels[i], together.ranks[i],
                         error_ns, parts_[rank.part], &ranks[i]);
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<ranks::Traced>> TracedTimes() const {
    std::vector<std::vector<ranks::Traced>> all;
    for (const RankOf& rank : ranks_) {
      std::vector<ranks::Traced>& traced = all.emplace_back();
      for (const DeviceStretch& one : rank.device.traced()) {
        traced.push_back({one.start_ns, one.end_ns});
      }
    }
    return all;
  }

  // Of a trace, of which nobody knows the clocks.
  absl::StatusOr<ranks::Together> InOrder(
      const std::vector<std::vector<ranks::Ended>>& kernels) {
    spread_ns_ = ranks::SpreadOfEnds(kernels);
    if (!spread_ns_) {
      return absl::FailedPreconditionError(
          "ranks have not the same kernels of communication in the same order: nobody "
          "knows which of them belong together");
    }
    ranks::Together together;
    together.spread_ns = *spread_ns_;
    for (const std::vector<ranks::Ended>& rank : kernels) {
      std::vector<ranks::Identity>& identities = together.ranks.emplace_back();
      for (size_t i = 0; i < rank.size(); ++i) {
        identities.push_back({i + 1, static_cast<uint32_t>(kernels.size()), 1});
      }
    }
    return together;
  }

  // A kernel's function is its name.
  std::vector<ranks::Ended> KernelsOf(const RankOf& rank) {
    std::vector<ranks::Ended> kernels;
    Names& names = *parts_[rank.part].names;
    for (const DeviceStretch& one : rank.device.communication()) {
      const uint32_t kernel = aggregate::KernelOf(rank.series[one.series]);
      const std::string& name = names.KernelName(names.Kernel(kernel).name);
      const auto next = static_cast<uint32_t>(functions_.size() + 1);
      kernels.push_back({one.start_ns, one.end_ns,
                         functions_.try_emplace(name, next).first->second,
                         rank.series[one.series].gpu_stream});
    }
    return kernels;
  }

  void Tell(const ranks::Story& story) {
    reply_.set_error_kind(spread_ns_ ? v1::CLOCK_ERROR_KIND_FIDUCIAL
                                     : v1::CLOCK_ERROR_KIND_BOUND);
    if (spread_ns_) reply_.set_error_ns(*spread_ns_);
    reply_.set_on_device(on_device_);
    reply_.set_world_size(static_cast<uint32_t>(ranks_.size()));
    reply_.set_collectives(story.collectives);
    reply_.set_steps(story.steps);
    reply_.set_counts_collectives(story.no_steps);
    reply_.set_unexplained_ns(story.unexplained_ns);
    reply_.set_unmatched_ns(story.unmatched_ns + unknown_ns_);
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
      row->set_communication_ns(ranks_[i].device.communication_ns());
      row->set_exposed_ns(ranks_[i].device.exposed_ns());
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
    TellWhen(story.late);
  }

  void TellWhen(const std::vector<ranks::LateTime>& late) {
    std::map<std::pair<int32_t, uint64_t>, v1::LateStretch> by_start;
    const uint64_t each_ns = (range_.until - range_.since) / kStretches + 1;
    const RankPart& shown = *std::find_if(
        parts_.begin(), parts_.end(),
        [this](const RankPart& part) { return part.job.id == view_.job.id; });
    const uint64_t begin_ns = shown.Common(view_.job.info.start_ns() + range_.since);
    for (const ranks::LateTime& one : late) {
      const int32_t rank = ranks_[one.rank].process.info.rank();
      // Of another host, it may have come before by the clock of this one.
      const uint64_t after_ns = one.came_ns - std::min(one.came_ns, begin_ns);
      const uint64_t stretch = std::min(after_ns / each_ns, kStretches - 1);
      v1::LateStretch& told = by_start[{rank, stretch}];
      told.set_rank(rank);
      told.set_start_ns(range_.since + stretch * each_ns);
      told.set_duration_ns(each_ns);
      told.set_count(told.count() + 1);
      told.set_cost_to_others_ns(told.cost_to_others_ns() + one.cost_ns);
    }
    std::set<int32_t> shown_ranks;
    for (const v1::RankRow& row : reply_.ranks()) shown_ranks.insert(row.rank());
    for (auto& [key, told] : by_start) {
      if (shown_ranks.count(key.first) > 0) {
        *reply_.add_late_stretches() = std::move(told);
      }
    }
  }

  void TellCause(const ranks::Cause& cause, v1::LateCause* out) {
    causes_.Fill(cause.what, out);
    out->set_steps(cause.steps);
    out->set_total_ns(cause.late_ns);
    out->set_cost_ns(cause.cost_ns);
  }

  View& view_;
  v1::Ranks& reply_;
  TimeRange range_;
  std::vector<RankPart> parts_;
  PartClocks clocks_;
  std::vector<RankOf> ranks_;
  std::vector<std::unique_ptr<Names>> own_names_;  // others are the view's
  LateCauses causes_;
  RankReader reader_{*view_.reader, causes_};
  DeviceWaits device_waits_{causes_};
  bool on_device_ = false;
  std::map<std::string, uint32_t> functions_;  // of kernels, by name
  uint64_t unknown_ns_ = 0;  // of kernels of which nobody knows the collective
  std::optional<uint64_t> spread_ns_;  // of ends, where these are all that is known
};

}  // namespace

bool HasCollectives(const View& view) {
  return std::any_of(
      view.processes.begin(), view.processes.end(), [&](const ProcessSums& sums) {
        return std::any_of(
            sums.series.begin(), sums.series.end(), [&](const Series& series) {
              return IsCollective(series) || IsCommunicating(series, *view.names);
            });
      });
}

absl::Status FillRanks(View& view, v1::ReportReply* reply) {
  v1::Ranks told;
  LULL_RETURN_IF_ERROR(Telling(view, &told).Fill());
  *reply->mutable_ranks() = std::move(told);
  return absl::OkStatus();
}

}  // namespace lull::query
