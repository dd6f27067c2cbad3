#include <algorithm>

#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_words.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/facts.h"

namespace lull {
namespace {

constexpr size_t kWidestName = 48;

// "data 31.0 %", of traced time; what is less than 1 % of it is not said.
std::string IdleFor(const v1::RegionRow& row) {
  if (row.causes().empty() || row.causes(0).total_ns() * 100 < row.traced_ns()) {
    return "-";
  }
  return absl::StrCat(CauseName(row.causes(0).cause()), " ",
                      FormatShare(D(row.causes(0).total_ns()), D(row.traced_ns())));
}

std::string NameOf(const v1::RegionRow& row) {
  const size_t indent = 2 * static_cast<size_t>(std::min(row.path_size(), 8));
  return absl::StrCat(std::string(indent, ' '),
                      Shortened(row.name(), kWidestName - indent));
}

std::string RegionsTable(const v1::Regions& reply) {
  if (reply.regions().empty()) {
    return "  No region ended (torch.profiler.record_function).\n";
  }
  Table table({">total", ">count", ">mean", ">GPU busy", "most idle for", "region"});
  for (const v1::RegionRow& row : reply.regions()) {
    table.AddRow({FormatDuration(row.total_ns()), FormatCount(row.count()),
                  Mean(row.total_ns(), row.count()),
                  FormatShare(D(row.gpu_busy_ns()), D(row.traced_ns())), IdleFor(row),
                  NameOf(row)});
  }
  return table.Text();
}

std::string Notes(const v1::Regions& reply) {
  std::string notes;
  if (reply.unnamed() > 0) {
    absl::StrAppend(&notes, "  ", FormatCount(reply.unnamed()),
                    " more whose names found no room.\n");
  }
  if (reply.unopened() > 0) {
    absl::StrAppend(
        &notes, "  ", FormatCount(reply.unopened()),
        " more were not recorded, or what they are within: too many were open "
        "at once.\n");
  }
  if (reply.unavailable() > 0) {
    absl::StrAppend(&notes, "  ", FormatCount(reply.unavailable()),
                    " processes have a PyTorch whose regions are not known to lull "
                    "(1.13 to 2.15 are).\n");
  }
  return notes;
}

}  // namespace

std::string RegionsText(const v1::ReportReply& reply, v1::GroupBy) {
  std::string text =
      Answer(reply, "Regions, those within it below each\n",
             absl::StrCat(RegionsTable(reply.regions()), Notes(reply.regions())));
  if (reply.regions().regions().empty()) return text;
  if (!HasGpuTruth(reply.gpu())) {
    return absl::StrCat(text, MissingLine(reply.gpu()), "\n");
  }
  return absl::StrCat(text, CoverageLine(reply.job(), reply.gpu()),
                      "; busy and idle\nare of the regions' time in it.\n");
}

}  // namespace lull
