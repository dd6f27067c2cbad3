#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/gpu_words.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/facts.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

std::string Between(const v1::GapRow& gap, v1::GroupBy group_by) {
  return absl::StrCat(CompactSite(gap.before(), group_by), " → ",
                      CompactSite(gap.after(), group_by));
}

}  // namespace

bool HasCulprit(const v1::GapRow& gap) {
  return !gap.culprit_api().empty() ||
         (gap.culprit().SerializeAsString() != gap.after().SerializeAsString() &&
          gap.culprit().ByteSizeLong() > 0);
}

std::string BlameOf(const v1::GapRow& gap, v1::GroupBy group_by) {
  // For data it is also known where it was asked for.
  if (!gap.doing().empty() && gap.cause() != v1::GAP_CAUSE_DATA_WAIT) {
    return DoingWords(gap.doing(0));
  }
  if (!HasCulprit(gap)) return Between(gap, group_by);
  std::string site = FormatSite(gap.culprit(), group_by);
  if (gap.culprit_api().empty()) return absl::StrCat("at ", site);
  return absl::StrCat(Shortened(gap.culprit_api(), 40), " at ", site);
}

std::string CausesTable(const v1::Gaps& reply, const v1::Gpu& gpu) {
  if (reply.causes().empty()) {
    return reply.region().empty() ? "  The GPU never idled.\n"
                                  : "  The GPU never idled in it.\n";
  }
  Table table({">idle", ">share", ">parts", ">mean", ">longest", "cause"});
  for (const v1::CauseRow& row : reply.causes()) {
    table.AddRow({FormatDuration(row.total_ns()),
                  FormatShare(D(row.total_ns()), D(gpu.idle_ns())),
                  FormatCount(row.count()), Mean(row.total_ns(), row.count()),
                  FormatDuration(row.max_ns()), CauseName(row.cause())});
  }
  return table.Text();
}

std::string ExplainedLine(const v1::Gpu& gpu) {
  if (gpu.idle_ns() == 0) return "";
  return absl::StrCat(
      "Explained: ", FormatShare(D(gpu.explained_ns()), D(gpu.idle_ns())),
      " of it is told with the line that did the work, or waited\n");
}

namespace {

// "in region epoch > forward", or with its share where that is not all of the row.
std::string RegionWords(const v1::GapRow& gap) {
  const v1::GapRegion& region = gap.regions(0);
  std::string path;
  for (const std::string& outer : region.path()) absl::StrAppend(&path, outer, " > ");
  const double percent = Percent(D(region.total_ns()), D(gap.total_ns()));
  return absl::StrCat(
      percent < 99.5 ? absl::StrCat(FormatShare(percent, 100), " ") : "", "in region ",
      Printable(absl::StrCat(path, region.name())));
}

uint64_t IdleOf(const v1::Gaps& reply) {
  uint64_t idle_ns = 0;
  for (const v1::CauseRow& row : reply.causes()) idle_ns += row.total_ns();
  return idle_ns;
}

// The part of the idle time that is shown.
std::string IdleHead(const v1::Gaps& reply, const v1::Gpu& gpu) {
  if (reply.region().empty()) {
    return absl::StrCat("\nIdle: ", FormatDuration(gpu.idle_ns()), ", by cause\n");
  }
  return absl::StrCat("\nIdle in region ", Printable(reply.region()), ": ",
                      FormatDuration(IdleOf(reply)), " of ",
                      FormatDuration(gpu.idle_ns()), ", by cause\n");
}

}  // namespace

std::string GapsTable(const v1::Gaps& reply, const v1::Gpu& gpu, v1::GroupBy group_by) {
  if (reply.gaps().empty()) return "";
  Table table({">idle", ">share", ">parts", ">longest", "cause", "before → after"});
  for (const v1::GapRow& gap : reply.gaps()) {
    table.AddRow({FormatDuration(gap.total_ns()),
                  FormatShare(D(gap.total_ns()), D(gpu.idle_ns())),
                  FormatCount(gap.count()), FormatDuration(gap.max_ns()),
                  CauseName(gap.cause()), Between(gap, group_by)});
    const bool data = gap.cause() == v1::GAP_CAUSE_DATA_WAIT;
    if (HasCulprit(gap) && (data || gap.doing().empty())) {
      table.AddNote(BlameOf(gap, group_by));
    }
    for (int i = 0; i < std::min(2, gap.doing_size()); ++i) {
      if (i == 0 || Matters(gap.doing(i))) table.AddNote(DoingWords(gap.doing(i)));
    }
    // One that has the least part of it says nothing.
    if (!gap.regions().empty() && 2 * gap.regions(0).total_ns() >= gap.total_ns()) {
      table.AddNote(RegionWords(gap));
    }
    AddStacks(table, gap, group_by);
  }
  return table.Text();
}

std::string GapsText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  std::string head = GpuHead(reply.job(), reply.gpu());
  if (!HasGpuTruth(reply.gpu())) return Answer(reply, head, "");
  std::string table = absl::StrCat(
      IdleHead(reply.gaps(), reply.gpu()), CausesTable(reply.gaps(), reply.gpu()),
      reply.gaps().region().empty() ? ExplainedLine(reply.gpu()) : "");
  if (!reply.gaps().gaps().empty()) {
    absl::StrAppend(&table, "\nBy line\n",
                    GapsTable(reply.gaps(), reply.gpu(), group_by));
  }
  return Answer(reply, head, table);
}

}  // namespace lull
