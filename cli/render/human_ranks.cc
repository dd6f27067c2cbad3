#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/late_words.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

// `hosts`: they are on several.
std::string RanksTable(const v1::Ranks& ranks, bool hosts) {
  std::vector<std::string> columns = {">rank",    ">pid",    ">step",
                                      ">late in", ">waited", ">cost to others"};
  if (ranks.on_device()) {
    columns.insert(columns.end(), {">communicates", ">exposed"});
  }
  if (hosts) columns.emplace_back("host");
  Table table(columns);
  for (const v1::RankRow& row : ranks.ranks()) {
    std::vector<std::string> cells = {
        absl::StrCat(row.rank()),
        absl::StrCat(row.pid()),
        row.step_ns() > 0 ? FormatDuration(row.step_ns()) : "-",
        FormatCount(row.late_steps()),
        FormatDuration(row.waited_ns()),
        FormatDuration(row.cost_to_others_ns())};
    if (ranks.on_device()) {
      cells.push_back(FormatDuration(row.communication_ns()));
      cells.push_back(FormatDuration(row.exposed_ns()));
    }
    if (hosts) cells.push_back(Shortened(row.host(), 40));
    table.AddRow(std::move(cells));
  }
  return table.Text();
}

std::string CausesText(const v1::Ranks& ranks) {
  std::string text;
  for (const v1::RankRow& row : ranks.ranks()) {
    for (const v1::LateCause& cause : row.culprits()) {
      absl::StrAppend(&text, Wrapped(LateSentences(ranks, row, cause), 2));
    }
  }
  if (!text.empty()) return absl::StrCat("\n", text);
  // --rank and --top leave some out.
  const bool all = static_cast<uint32_t>(ranks.ranks_size()) == ranks.world_size();
  return absl::StrCat("\n  ", all ? "No rank" : "None of these ranks",
                      " was late for a cause that is known.\n");
}

std::string Notes(const v1::Ranks& ranks) {
  std::string text =
      absl::StrCat("  Waited for the last one without a cause that is known: ",
                   FormatDuration(ranks.unexplained_ns()),
                   ".\n  Waits and communication of which nothing is told: ",
                   FormatDuration(ranks.unmatched_ns()), ".\n");
  if (ranks.on_device()) {
    absl::StrAppend(&text,
                    "  By the kernels of NCCL, in the time that GPUs were traced.\n");
  }
  if (ranks.error_kind() == v1::CLOCK_ERROR_KIND_FIDUCIAL) {
    absl::StrAppend(&text, "  Collectives end together on all ranks, here within ",
                    FormatDuration(ranks.error_ns()), "; nobody is named for less.\n");
  } else if (ranks.error_kind() != v1::CLOCK_ERROR_KIND_BOUND) {
    absl::StrAppend(&text, "  How far clocks of ranks are apart is not known.\n");
  } else if (ranks.error_ns() > 0) {
    absl::StrAppend(&text, "  Clocks of hosts are compared to within ",
                    FormatDuration(ranks.error_ns()), "; nobody is named for less.\n");
  }
  if (ranks.cut()) {
    absl::StrAppend(&text, "  Only the last ",
                    FormatDuration(ranks.end_ns() - ranks.start_ns()),
                    " were looked at: there are too many events for more.\n");
  }
  return text;
}

}  // namespace

std::string RanksText(const v1::ReportReply& reply, v1::GroupBy) {
  const v1::Ranks& ranks = reply.ranks();
  const bool steps = !ranks.counts_collectives();
  return Answer(
      reply,
      absl::StrCat("Who waited for whom: ", Counted(ranks.world_size(), "rank"), ", ",
                   steps ? absl::StrCat(Counted(ranks.steps(), "step"), ", ") : "",
                   Counted(ranks.collectives(), "collective"), "\n"),
      absl::StrCat(RanksTable(ranks, !reply.job().parts().empty()), CausesText(ranks),
                   "\n", Notes(ranks)));
}

}  // namespace lull
