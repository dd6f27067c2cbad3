#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/facts.h"

namespace lull {
namespace {

constexpr size_t kNameWidth = 40;

// Without the parameters of a demangled name: what is in the last parentheses.
absl::string_view WithoutParameters(absl::string_view name) {
  if (!absl::EndsWith(name, ")")) return name;
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return i > 0 ? name.substr(0, i) : name;
  }
  return name;
}

// "aten::add_ at train.py:41 step; 12.3 blocks per SM, occupancy 45 %"
std::string Origin(const v1::KernelRow& row, v1::GroupBy group_by) {
  std::vector<std::string> parts;
  std::string site = row.site().ByteSizeLong() > 0
                         ? absl::StrCat("at ", FormatSite(row.site(), group_by))
                         : "";
  std::string origin = row.operator_name();
  if (!origin.empty()) origin = Shortened(origin, 48);
  if (!site.empty()) absl::StrAppend(&origin, origin.empty() ? "" : " ", site);
  if (!origin.empty()) parts.push_back(origin);
  if (row.blocks_per_sm() > 0) {
    parts.push_back(absl::StrFormat("%.3g blocks per SM", row.blocks_per_sm()));
  }
  if (row.occupancy_percent() > 0) {
    parts.push_back(absl::StrFormat("occupancy %.3g %%", row.occupancy_percent()));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string ShortKernel(absl::string_view name, size_t width) {
  std::string text(WithoutParameters(absl::StripPrefix(name, "void ")));
  text = absl::StrReplaceAll(
      text,
      {{"at::native::", ""}, {"(anonymous namespace)::", ""}, {"<unnamed>::", ""}});
  return Shortened(text, width);
}

std::string KernelsTable(const v1::Kernels& reply, v1::GroupBy group_by) {
  if (reply.kernels().empty()) return "  No kernel ran in traced time.\n";
  Table table({">total", ">share", ">calls", ">avg", ">min", ">max", "TC", "kernel"});
  for (const v1::KernelRow& row : reply.kernels()) {
    table.AddRow({FormatDuration(row.total_ns()),
                  FormatShare(D(row.total_ns()), D(reply.total_ns())),
                  FormatCount(row.calls()), Mean(row.total_ns(), row.calls()),
                  FormatDuration(row.min_ns()), FormatDuration(row.max_ns()),
                  row.tensor_core() ? "TC" : "-", ShortKernel(row.name(), kNameWidth)});
    std::string origin = Origin(row, group_by);
    if (!origin.empty()) table.AddNote(origin);
    if (group_by == v1::GROUP_BY_STACK) table.AddNote(Shortened(row.name(), 400));
    AddStacks(table, row, group_by);
  }
  return table.Text();
}

std::string CopiesTable(const v1::Kernels& reply) {
  if (reply.copies().empty()) return "  Nothing was copied in traced time.\n";
  Table table({">total", ">count", ">bytes", ">GB/s", "direction", "host memory"});
  for (const v1::CopyRow& row : reply.copies()) {
    std::string speed =
        row.total_ns() > 0 ? absl::StrFormat("%.3g", D(row.bytes()) / D(row.total_ns()))
                           : "-";
    table.AddRow({FormatDuration(row.total_ns()), FormatCount(row.count()),
                  FormatBytes(static_cast<int64_t>(row.bytes())), speed,
                  Shortened(row.direction(), 12),
                  row.memory().empty() ? "-" : Shortened(row.memory(), 12)});
  }
  return table.Text();
}

std::string KernelsText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  std::string head = GpuHead(reply.job(), reply.gpu());
  if (!HasGpuTruth(reply.gpu())) return Answer(reply, head, "");
  const v1::Kernels& kernels = reply.kernels();
  return Answer(reply, head,
                absl::StrCat("\nKernels: ", FormatDuration(kernels.total_ns()), " in ",
                             FormatCount(kernels.total_calls()),
                             " launches (TC: runs on tensor cores)\n",
                             KernelsTable(kernels, group_by), "\nCopies and memsets\n",
                             CopiesTable(kernels)));
}

}  // namespace lull
