#include "cli/html/timeline_json.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "cli/render/gpu_words.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"

namespace lull {
namespace {

// A gap's end is told to a tenth of a microsecond.
constexpr uint64_t kTickNs = 100;

uint64_t Ticks(uint64_t ns) { return (ns + kTickNs / 2) / kTickNs; }

template <typename List>
Json TicksJson(const List& list) {
  Json json = Json::array();
  for (uint64_t ns : list) json.push_back(Ticks(ns));
  return json;
}

// Differences of what is rounded, so that no error adds up.
template <typename List>
Json DistancesJson(const List& list) {
  Json json = Json::array();
  uint64_t before = 0;
  for (uint64_t ns : list) {
    json.push_back(static_cast<int64_t>(Ticks(ns)) - static_cast<int64_t>(before));
    before = Ticks(ns);
  }
  return json;
}

Json BandJson(const v1::TimelineBand& band) {
  Json causes = Json::array();
  for (const v1::TimelineBand::Cause& cause : band.causes()) {
    causes.push_back(
        {{"cause", CauseKey(cause.cause())}, {"idle", TicksJson(cause.idle_ns())}});
  }
  Json kinds = Json::array();
  for (uint32_t kind : band.gap_kind()) kinds.push_back(kind);
  return {{"pid", band.pid()},
          {"rank", RankJson(band.rank())},
          {"device", band.device()},
          {"traced", TicksJson(band.traced_ns())},
          {"busy", TicksJson(band.busy_ns())},
          {"kernel", TicksJson(band.kernel_ns())},
          {"causes", std::move(causes)},
          {"gap_start", DistancesJson(band.gap_start_ns())},
          {"gap_duration", TicksJson(band.gap_duration_ns())},
          {"gap_kind", std::move(kinds)}};
}

Json KindsJson(const v1::Timeline& timeline) {
  return RowsJson(timeline.kinds(), [](const v1::GapRow& kind, Json& json) {
    json["cause"] = CauseKey(kind.cause());
    json["api"] = TextOrNull(kind.culprit_api());
    json.erase("samples");
  });
}

Json StepBandJson(const v1::StepBand& band) {
  Json numbers = Json::array();
  for (uint64_t number : band.number()) numbers.push_back(number);
  return {{"pid", band.pid()},
          {"rank", RankJson(band.rank())},
          {"count", band.count()},
          {"number", std::move(numbers)},
          {"start", DistancesJson(band.start_ns())},
          {"duration", TicksJson(band.duration_ns())}};
}

Json OutliersJson(const v1::Timeline& timeline) {
  Json rows = Json::array();
  for (const v1::StepOutlier& outlier : timeline.outliers()) {
    const v1::StepRow& step = outlier.step();
    rows.push_back({{"pid", step.pid()},
                    {"rank", RankJson(step.rank())},
                    {"number", step.number()},
                    {"start_ms", Ms(step.start_ns())},
                    {"duration_ms", Ms(step.duration_ns())},
                    {"times_median", outlier.times_median()},
                    {"part", TextOrNull(outlier.part())},
                    {"excess_ms", MsIf(!outlier.part().empty(), outlier.excess_ns())}});
  }
  return rows;
}

}  // namespace

Json TimelineJson(const v1::ReportReply& reply) {
  const v1::Timeline& timeline = reply.timeline();
  Json bands = Json::array();
  for (const v1::TimelineBand& band : timeline.bands()) bands.push_back(BandJson(band));
  Json steps = Json::array();
  for (const v1::StepBand& band : timeline.steps()) steps.push_back(StepBandJson(band));
  return {{"tick_ns", kTickNs},
          {"start_ms", Ms(timeline.start_ns())},
          {"end_ms", Ms(timeline.end_ns())},
          {"bin_ms", Ms(timeline.bin_ns())},
          {"bands", std::move(bands)},
          {"kinds", KindsJson(timeline)},
          {"gaps", timeline.gaps()},
          {"left_out", timeline.left_out()},
          {"left_out_ms", Ms(timeline.left_out_ns())},
          {"longest_left_out_ms", Ms(timeline.longest_left_out_ns())},
          {"looked_at", RowsJson(timeline.looked_at())},
          {"steps", std::move(steps)},
          {"outliers", OutliersJson(timeline)},
          {"outliers_in_all", timeline.outliers_in_all()}};
}

void ThinGaps(size_t most, v1::Timeline* timeline) {
  std::vector<uint64_t> durations;
  for (const v1::TimelineBand& band : timeline->bands()) {
    durations.insert(durations.end(), band.gap_duration_ns().begin(),
                     band.gap_duration_ns().end());
  }
  if (durations.size() <= most) return;
  std::sort(durations.begin(), durations.end(), std::greater<>());
  const uint64_t bound = durations[most];  // as long and shorter ones go
  for (v1::TimelineBand& band : *timeline->mutable_bands()) {
    int kept = 0;
    for (int i = 0; i < band.gap_duration_ns_size(); ++i) {
      const uint64_t ns = band.gap_duration_ns(i);
      if (ns > bound) {
        band.set_gap_start_ns(kept, band.gap_start_ns(i));
        band.set_gap_duration_ns(kept, ns);
        band.set_gap_kind(kept++, band.gap_kind(i));
        continue;
      }
      timeline->set_left_out(timeline->left_out() + 1);
      timeline->set_left_out_ns(timeline->left_out_ns() + ns);
      timeline->set_longest_left_out_ns(std::max(timeline->longest_left_out_ns(), ns));
      timeline->set_gaps(timeline->gaps() - 1);
    }
    band.mutable_gap_start_ns()->Truncate(kept);
    band.mutable_gap_duration_ns()->Truncate(kept);
    band.mutable_gap_kind()->Truncate(kept);
  }
}

}  // namespace lull
