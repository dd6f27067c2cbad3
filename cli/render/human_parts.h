// What the tables of several reports have in common.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/render/lines.h"
#include "cli/render/table.h"
#include "daemon/words/format.h"
#include "query.pb.h"

namespace lull {

inline std::string Mean(uint64_t total_ns, uint64_t count) {
  return count == 0 ? "-" : FormatDuration(total_ns / count);
}

// A figure of a row that rests on drawn blocks.
template <typename Row>
std::string Marked(const Row& row, const std::string& figure) {
  return row.estimated() ? absl::StrCat("~", figure) : figure;
}
// What the mark means, where there is one.
template <typename Rows>
std::string MarkNote(const Rows& rows) {
  for (const auto& row : rows) {
    if (row.estimated()) {
      return "  ~ estimated: of blocks under 64 KiB some are drawn (the error: "
             "--json)\n";
    }
  }
  return "";
}

template <typename Frames>
void AddFrames(Table& table, const Frames& frames) {
  for (const v1::Frame& frame : frames) table.AddNote(FormatFrame(frame));
}

// The stacks under a row, when that is how the rows were grouped.
template <typename Row>
void AddStacks(Table& table, const Row& row, v1::GroupBy group_by) {
  if (group_by != v1::GROUP_BY_STACK) return;
  AddFrames(table, row.stack());
  if constexpr (requires { row.native_stack(); }) AddFrames(table, row.native_stack());
}

// The job, and which of its phases.
inline std::string Head(const v1::ReportReply& reply) {
  std::string phase = PhaseLine(reply);
  return absl::StrCat(JobLine(reply.job()), "\n", phase, phase.empty() ? "" : "\n");
}

// One section of a report: the job, the section itself, and what measuring cost.
inline std::string Answer(const v1::ReportReply& reply, const std::string& headline,
                          const std::string& table) {
  return absl::StrCat(Head(reply), "\n", headline, table, "\n",
                      LossesLine(reply.job(), reply.losses()), "\n",
                      // Nobody knows what recording an imported trace cost.
                      reply.job().has_imported() ? "" : CostLines(reply.overhead()));
}

}  // namespace lull
