#include "cli/html/page.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/html/flame.h"
#include "cli/html/packed.h"
#include "cli/html/request.h"
#include "cli/html/template.h"
#include "cli/html/timeline_json.h"
#include "cli/render/diff.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/imported.h"
#include "cli/render/lines.h"
#include "daemon/words/facts.h"
#include "daemon/words/late_words.h"

namespace lull {
namespace {

struct Bounds {
  size_t name_bytes;
  size_t gaps;
  size_t flame_nodes;
  int stacks;   // of kinds of gaps
  int sources;  // beside those of the report
  size_t late;  // stretches in which a rank was
};
// The first that makes the page fit is taken.
constexpr Bounds kBounds[] = {
    {2'000, 100'000, 6'000, 500, 1'500, 5'000},
    {1'000, 60'000, 4'000, 300, 1'000, 3'000},
    {500, 30'000, 2'000, 100, 500, 2'000},
    {200, 15'000, 1'000, 30, 200, 1'000},
    {100, 8'000, 500, 0, 0, 500},
    {40, 2'000, 200, 0, 0, 200},
};

// What a verb prints, without what stands in `report` already.
Json Body(Json answer) {
  for (const char* key : {"job", "gpu", "phase", "setup_ms", "losses", "overhead"}) {
    answer.erase(key);
  }
  return answer;
}

// In the words of `lull report`.
Json LinesJson(const v1::ReportReply& reply) {
  const v1::Gpu& gpu = reply.gpu();
  const bool truth = HasGpuTruth(gpu);
  Json remarks = Json::array();
  auto remark = [&remarks](std::string line) {
    if (!line.empty()) remarks.push_back(std::move(line));
  };
  remark(StoodAsideLine(gpu));
  remark(GpuLossesLine(gpu));
  for (const v1::NonFinite& first : reply.non_finite()) remark(NonFiniteLine(first));
  Json imported = Json::array();
  if (reply.job().has_imported()) imported = ImportedRemarks(reply.job().imported());
  return {
      {"job", JobLine(reply.job())},
      {"phase", PhaseLine(reply)},
      {"busy", truth ? BusyLine(gpu) : MissingLine(gpu)},
      {"coverage", truth ? CoverageLine(reply.job(), gpu) : ""},
      {"no_advice", NoAdvice(reply)},
      {"losses", LossesLine(reply.job(), reply.losses())},
      {"step_cost", StepCostLine(reply.overhead())},
      {"overhead", reply.job().has_imported() ? "" : OverheadLine(reply.overhead())},
      {"remarks", std::move(remarks)},
      {"imported", std::move(imported)}};
}

// Null where nobody is known to have waited for another rank. Of many stretches those
// that cost most.
Json WhoWaitedJson(const v1::ReportReply& reply, size_t most) {
  if (!reply.has_ranks()) return nullptr;
  v1::ReportReply few;
  *few.mutable_ranks() = reply.ranks();
  auto& stretches = *few.mutable_ranks()->mutable_late_stretches();
  const auto all = static_cast<size_t>(stretches.size());
  if (all > most) {
    std::nth_element(stretches.begin(), stretches.begin() + static_cast<int>(most),
                     stretches.end(), [](const auto& a, const auto& b) {
                       return a.cost_to_others_ns() > b.cost_to_others_ns();
                     });
    stretches.DeleteSubrange(static_cast<int>(most), static_cast<int>(all - most));
  }
  Json json = Body(RanksJson(few));
  json["late_left_out"] = all - std::min(all, most);
  Json story = Json::array();
  for (const v1::RankRow& row : reply.ranks().ranks()) {
    for (const v1::LateCause& cause : row.culprits()) {
      story.push_back(LateSentences(reply.ranks(), row, cause));
    }
  }
  json["story"] = std::move(story);
  return json;
}

void DropStacks(int from, v1::Timeline* timeline) {
  for (int i = from; i < timeline->kinds_size(); ++i) {
    timeline->mutable_kinds(i)->clear_stack();
    timeline->mutable_kinds(i)->clear_native_stack();
  }
}

// Of sites that do not stand in the report itself.
Json MoreSources(const v1::ReportReply& reply, int most) {
  std::set<std::pair<std::string, uint32_t>> told;
  for (const v1::SourceDef& source : reply.sources()) {
    told.emplace(source.file(), source.line());
  }
  v1::ReportReply more;
  for (const v1::ReportReply& detail : reply.details()) {
    for (const v1::SourceDef& source : detail.sources()) {
      if (more.sources_size() >= most) return SourcesJson(more);
      if (!told.emplace(source.file(), source.line()).second) continue;
      *more.add_sources() = source;
    }
  }
  return SourcesJson(more);
}

Json DataWithin(const Bounds& bounds, const v1::ReportReply& reply) {
  const PageParts parts = PartsOf(reply);
  v1::ReportReply timeline;
  *timeline.mutable_timeline() = parts.timeline.timeline();
  ThinGaps(bounds.gaps, timeline.mutable_timeline());
  DropStacks(bounds.stacks, timeline.mutable_timeline());
  Packer packer(bounds.name_bytes);
  Json data = {{"kind", "report"},
               {"complete", reply.details_size() > 0},
               {"lines", LinesJson(reply)},
               {"report", ReportJson(reply)},
               {"steps", Body(StepsJson(parts.steps))},
               {"memory", Body(MemoryJson(parts.memory))},
               {"hot", Body(HotJson(parts.hot))},
               {"no_samples", parts.hot.untold()},
               {"data", Body(DataJson(parts.data))},
               {"regions", Body(RegionsJson(parts.regions))},
               {"operators", Body(OperatorsJson(parts.operators))},
               {"ranks", WhoWaitedJson(reply, bounds.late)},
               {"sources", MoreSources(reply, bounds.sources)},
               {"timeline", TimelineJson(timeline)}};
  packer.Pack(data);
  data["flame"] = FlameJson(parts.stacks.hot(), bounds.flame_nodes, packer);
  data["cut_names"] = packer.cut();
  data["frames"] = packer.frames();
  return data;
}

// With the first bounds by which it fits.
std::string TextWithin(const v1::ReportReply& reply, const Json& more) {
  std::string text;
  for (const Bounds& bounds : kBounds) {
    Json data = DataWithin(bounds, reply);
    data.update(more);
    text = ScriptText(data);
    if (ServedTemplate().bytes + text.size() <= kPageBytes) break;
  }
  return text;
}

std::string Around(const std::string& data, const Template& around) {
  std::string page;
  page.reserve(around.bytes + data.size());
  for (absl::string_view piece : around.before) absl::StrAppend(&page, piece);
  page.append(data);
  for (absl::string_view piece : around.after) absl::StrAppend(&page, piece);
  return page;
}

}  // namespace

Json PageData(const v1::ReportReply& reply, const std::string& made_at) {
  Json data = DataWithin(kBounds[0], reply);
  data["made_at"] = made_at;
  return data;
}

Json JobsPageData(const v1::ListJobsReply& reply) {
  Json data = {{"kind", "jobs"}};
  data.update(JobsJson(reply));
  Packer(kBounds[0].name_bytes).Pack(data);
  return data;
}

Json DiffPageData(const compare::Comparison& comparison, size_t top) {
  // Beside the rows that are shown, how many there are.
  Json data = {{"kind", "diff"},
               {"kernels", comparison.kernels.size()},
               {"functions", comparison.functions.size()},
               {"diff", DiffJson(comparison, top)}};
  Packer(kBounds[0].name_bytes).Pack(data);
  return data;
}

std::string MadeNow() {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::Now(), absl::UTCTimeZone());
}

std::string Page(const v1::ReportReply& reply, const std::string& made_at) {
  return Around(TextWithin(reply, {{"made_at", made_at}}), FileTemplate());
}

std::string DiffPage(const compare::Comparison& comparison, size_t top,
                     const std::string& made_at) {
  Json data = DiffPageData(comparison, top);
  data["made_at"] = made_at;
  return Around(ScriptText(data), FileTemplate());
}

std::string LivePageText(const v1::ReportReply& reply, bool live) {
  return TextWithin(reply, {{"live", live}});
}

std::string ServedPage(const std::string& data) {
  return Around(data, ServedTemplate());
}

}  // namespace lull
