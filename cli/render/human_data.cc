#include "cli/render/human.h"
#include "cli/render/human_parts.h"

namespace lull {
namespace {

std::string LoadersTable(const v1::DataLoading& reply, v1::GroupBy group_by) {
  if (reply.loaders().empty()) {
    return "  No batch of a DataLoader was seen (PyTorch 1.13 to 2.15 tell of them).\n";
  }
  Table table({{"waited", kRight},
               {"calls", kRight},
               {"mean", kRight},
               {"longest", kRight},
               {"blocked", kRight},
               {"loader", kLeft},
               {"where", kLeft}});
  for (const v1::LoaderRow& row : reply.loaders()) {
    table.AddRow({FormatDuration(row.total_ns()), FormatCount(row.calls()),
                  Mean(row.total_ns(), row.calls()), FormatDuration(row.max_ns()),
                  row.blocked_ns() > row.total_ns()
                      ? "-"
                      : FormatShare(D(row.blocked_ns()), D(row.total_ns())),
                  Shortened(row.loader(), 32), FormatSite(row.site(), group_by)});
  }
  return table.Text();
}

}  // namespace

std::string DataText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  return Answer(reply, "In __next__ of DataLoaders; what did not block was computed\n",
                LoadersTable(reply.data(), group_by));
}

}  // namespace lull
