#include <string>

#include "absl/strings/str_cat.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/enum_key.h"

namespace lull {
namespace {

constexpr size_t kOperatorWidth = 34;

// Zero is said only where it is known.
std::string Bytes(uint64_t allocations, uint64_t bytes, bool complete) {
  if (allocations == 0 && !complete) return "-";
  return FormatBytes(static_cast<int64_t>(bytes));
}

std::string OperatorsTable(const v1::Operators& reply, v1::GroupBy group_by) {
  if (reply.operators().empty()) {
    return "  No operator of PyTorch is known that launched or allocated anything.\n";
  }
  const bool complete = reply.known_bytes() == reply.allocated_bytes();
  Table table(
      {">own GPU", ">share", ">total", ">launches", ">bytes", "pass", "operator"});
  for (const v1::OperatorRow& row : reply.operators()) {
    table.AddRow(
        {FormatDuration(row.own_gpu_ns()),
         FormatShare(D(row.own_gpu_ns()), D(reply.gpu_ns())),
         FormatDuration(row.gpu_ns()), FormatCount(row.launches()),
         Marked(row, Bytes(row.allocations(), row.allocated_bytes(), complete)),
         KeyOf(row.pass()), Shortened(row.name(), kOperatorWidth)});
    if (row.site().ByteSizeLong() > 0) {
      table.AddNote(absl::StrCat("at ", FormatSite(row.site(), group_by)));
    }
    AddStacks(table, row, group_by);
  }
  return absl::StrCat(table.Text(), MarkNote(reply.operators()));
}

std::string Notes(const v1::Operators& reply) {
  std::string notes;
  if (reply.unknown_launches() > 0) {
    absl::StrAppend(&notes, "  Of no operator that is known: ",
                    FormatDuration(reply.unknown_gpu_ns()), " in ",
                    FormatCount(reply.unknown_launches()), " launches (",
                    FormatShare(D(reply.unknown_gpu_ns()), D(reply.gpu_ns())), ").\n");
  }
  if (reply.allocated_bytes() > reply.known_bytes()) {
    absl::StrAppend(&notes, "  Bytes are of ",
                    FormatShare(D(reply.known_bytes()), D(reply.allocated_bytes())),
                    " of what tensors took of devices; of the rest the operator is not "
                    "known.\n");
  }
  return notes;
}

}  // namespace

std::string OperatorsText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  const v1::Operators& operators = reply.operators();
  std::string head = GpuHead(reply.job(), reply.gpu());
  return Answer(reply, head,
                absl::StrCat("\nOperators: ", FormatDuration(operators.gpu_ns()),
                             " in ", FormatCount(operators.launches()), " launches\n",
                             OperatorsTable(operators, group_by), Notes(operators)));
}

}  // namespace lull
