#include "daemon/query/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/stretch.h"
#include "daemon/base/status.h"
#include "daemon/query/step_bands.h"
#include "daemon/query/timeline_bins.h"
#include "daemon/query/timeline_gaps.h"

namespace lull::query {
namespace {

constexpr size_t kMostBinsOfBand = 2'048;
constexpr size_t kLeastBinsOfBand = 128;
// Where not all can be looked at, so many stretches are, evenly spread.
constexpr uint64_t kSlices = 64;

struct BandOf {
  const ProcessSums* process = nullptr;
  DeviceId device{};
};

class Drawing {
 public:
  Drawing(View& view, const TimelineBounds& bounds, v1::Timeline* reply)
      : view_(view),
        bounds_(bounds),
        reply_(*reply),
        start_ns_(view.range.since),
        end_ns_(
            std::min(view.range.until,
                     aggregate::AfterStart(view.job.last_event_ns, job_start_ns_) + 1)),
        gaps_(bounds.gaps, bounds.kinds) {
    end_ns_ = std::max(end_ns_, start_ns_ + 1);
    FindBands();
  }

  absl::Status Fill() {
    LULL_ASSIGN_OR_RETURN(const uint64_t events, CountEvents());
    const bool all = events <= bounds_.events;
    ChooseBins(all);
    for (const BandOf& band : bands_) AddBand(band);
    for (const ProcessSums* process : processes_) {
      if (all) {
        LULL_RETURN_IF_ERROR(Look(*process, start_ns_, end_ns_, /*bins=*/true));
      } else {
        LULL_RETURN_IF_ERROR(AddBuckets(*process));
      }
    }
    if (!all) LULL_RETURN_IF_ERROR(LookAtSome(events));
    for (size_t i = 0; i < bands_.size(); ++i) {
      bins_[i].Fill(reply_.mutable_bands(static_cast<int>(i)));
    }
    gaps_.Fill(*view_.names, &reply_);
    reply_.set_start_ns(start_ns_);
    reply_.set_end_ns(end_ns_);
    reply_.set_bin_ns(bin_ns_);
    return absl::OkStatus();
  }

 private:
  void FindBands() {
    for (const ProcessSums& sums : view_.processes) {
      const size_t before = bands_.size();
      for (const Series& series : sums.series) {
        if (series.type != EventType::kCoverage && series.type != EventType::kIdle) {
          continue;
        }
        const DeviceId device = aggregate::DeviceOf(series);
        const bool known =
            std::any_of(bands_.begin() + static_cast<ptrdiff_t>(before), bands_.end(),
                        [device](const BandOf& band) { return band.device == device; });
        if (!known) bands_.push_back({&sums, device});
      }
      if (bands_.size() > before) processes_.push_back(&sums);
    }
    std::stable_sort(bands_.begin(), bands_.end(),
                     [](const BandOf& a, const BandOf& b) {
                       const auto& one = a.process->process.info;
                       const auto& other = b.process->process.info;
                       return std::tuple(one.rank(), one.pid(), a.device) <
                              std::tuple(other.rank(), other.pid(), b.device);
                     });
    for (size_t i = 0; i < bands_.size(); ++i) {
      numbers_[{bands_[i].process, bands_[i].device}] = i;
    }
  }

  absl::StatusOr<uint64_t> CountEvents() {
    uint64_t events = 0;
    for (const ProcessSums* process : processes_) {
      LULL_ASSIGN_OR_RETURN(
          uint64_t count,
          view_.reader->events().Count(process->process.id, storage::kDerivedRing));
      events += count;
    }
    return events;
  }

  // Where sums of buckets fill them, bins are whole buckets.
  void ChooseBins(bool all) {
    const size_t most = std::clamp(bounds_.bins / std::max<size_t>(1, bands_.size()),
                                   kLeastBinsOfBand, kMostBinsOfBand);
    if (all) {
      bin_ns_ = (end_ns_ - start_ns_ + most - 1) / most;
    } else {
      bucket_ns_ = aggregate::kBucketNs;
      // Four buckets to a bin at most times the width of the next level.
      while (level_ + 1 < aggregate::kBucketLevels &&
             (end_ns_ - start_ns_) / bucket_ns_ > 16 * most) {
        bucket_ns_ <<= aggregate::kBucketShift;
        ++level_;
      }
      start_ns_ -= start_ns_ % bucket_ns_;
      const uint64_t buckets = (end_ns_ - start_ns_) / bucket_ns_ + 1;
      bin_ns_ = bucket_ns_ * ((buckets + most - 1) / most);
    }
    count_ = static_cast<size_t>((end_ns_ - start_ns_) / bin_ns_ + 1);
  }

  void AddBand(const BandOf& band) {
    bins_.emplace_back(start_ns_, bin_ns_, count_);
    v1::TimelineBand* row = reply_.add_bands();
    row->set_pid(band.process->process.info.pid());
    row->set_rank(band.process->process.info.rank());
    row->set_device(Number(band.device));
  }

  const Series* Find(const ProcessSums& process, uint32_t id) const {
    return id < process.series.size() ? &process.series[id] : nullptr;
  }

  // With `bins`: what lies in [begin, end). Else the gaps that begin there: reading
  // from the beginning of a bucket would be reading all where stretches are short.
  absl::Status Look(const ProcessSums& process, uint64_t begin, uint64_t end,
                    bool bins) {
    const uint64_t start = job_start_ns_;
    // No stretch reaches beyond its bucket; within it, it may have begun before.
    const uint64_t first = bins ? begin - begin % aggregate::kBucketNs : begin;
    return view_.reader->events().ReadRing(
        process.process.id, storage::kDerivedRing, start + first, start + end,
        [&](Event event) {
          const Series* series = Find(process, event.series);
          if (series == nullptr || !aggregate::IsStretch(series->type)) return;
          auto it = numbers_.find({&process, aggregate::DeviceOf(*series)});
          if (it == numbers_.end()) return;
          if (bins && !aggregate::ClipStretch(series->type, start + begin, start + end,
                                              event)) {
            return;
          }
          const uint64_t from = aggregate::AfterStart(event.start_ns, start);
          const uint64_t to = from + event.duration_ns;
          if (series->type == EventType::kIdle) {
            gaps_.Add(it->second, process, event, start);
            if (bins) bins_[it->second].AddIdle(from, to, aggregate::CauseOf(*series));
          } else if (bins) {
            const aggregate::CoverageView view{event};
            bins_[it->second].AddTraced(from, to, view.busy_ns(), view.kernel_ns());
          }
        });
  }

  absl::Status LookAtSome(uint64_t events) {
    const uint64_t slice = std::max<uint64_t>(1, (end_ns_ - start_ns_) / kSlices);
    const double share =
        static_cast<double>(bounds_.events) / static_cast<double>(events);
    const auto length = std::max<uint64_t>(
        1, static_cast<uint64_t>(static_cast<double>(slice) * share));
    for (uint64_t begin = start_ns_; begin < end_ns_; begin += slice) {
      const uint64_t end = std::min(end_ns_, begin + length);
      auto* stretch = reply_.add_looked_at();
      stretch->set_start_ns(begin);
      stretch->set_end_ns(end);
      for (const ProcessSums* process : processes_) {
        LULL_RETURN_IF_ERROR(Look(*process, begin, end, /*bins=*/false));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddBuckets(const ProcessSums& process) {
    return view_.reader->cells().ReadBuckets(
        process.process.id, level_, start_ns_ / bucket_ns_, end_ns_ / bucket_ns_ + 1,
        [&](uint64_t bucket, uint32_t id, const Cell& cell) {
          const Series* series = Find(process, id);
          if (series == nullptr || !aggregate::IsStretch(series->type)) return;
          auto it = numbers_.find({&process, aggregate::DeviceOf(*series)});
          if (it == numbers_.end()) return;
          const uint64_t at = bucket * bucket_ns_;
          if (series->type == EventType::kIdle) {
            bins_[it->second].AddSums(at, aggregate::CauseOf(*series), cell.total_ns);
          } else {
            bins_[it->second].AddTracedSums(at, cell.total_ns, cell.amount,
                                            cell.amount2);
          }
        });
  }

  View& view_;
  const uint64_t job_start_ns_ = view_.job.info.start_ns();
  const TimelineBounds& bounds_;
  v1::Timeline& reply_;
  uint64_t start_ns_, end_ns_;
  uint64_t bin_ns_ = 1, bucket_ns_ = aggregate::kBucketNs;
  uint32_t level_ = 0;
  size_t count_ = 0;
  std::vector<BandOf> bands_;
  std::vector<const ProcessSums*> processes_;  // that have bands
  std::map<std::pair<const ProcessSums*, DeviceId>, size_t> numbers_;
  std::vector<TimelineBins> bins_;
  TimelineGaps gaps_;
};

}  // namespace

absl::Status FillTimeline(View& view, const TimelineBounds& bounds,
                          v1::Timeline* reply) {
  LULL_RETURN_IF_ERROR(Drawing(view, bounds, reply).Fill());
  return FillStepBands(view, reply);
}

}  // namespace lull::query
