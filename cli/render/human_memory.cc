#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "cli/render/imported.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

// Rows that are shown with all that is known of them; --json has all of all.
constexpr int kDetailed = 3;
constexpr int kPoints = 8;

std::string RankText(int32_t rank) { return rank < 0 ? "-" : absl::StrCat(rank); }

// "torch_cuda of device 0 in pid 4312"
std::string NameOf(const v1::MemoryRow& row) {
  return absl::StrCat(
      Shortened(row.allocator(), 20),
      row.device() < 0 ? "" : absl::StrCat(" of device ", row.device()),
      row.pid() == 0 ? "" : absl::StrCat(" in pid ", row.pid()),
      row.pid() == 0 && row.rank() >= 0 ? absl::StrCat(" of rank ", row.rank()) : "");
}

std::string OverviewTable(const v1::Memory& reply) {
  if (reply.rows().empty()) return "  No allocation was seen.\n";
  Table table({">peak", ">at", ">reserved", ">unused", ">at the end", ">reserved",
               ">unused", ">pid", ">rank", ">device", "allocator"});
  for (const v1::MemoryRow& row : reply.rows()) {
    std::vector<std::string> cells = {FormatBytes(row.peak_bytes()),
                                      FormatDuration(row.peak_time_ns())};
    auto add_reserved = [&](int64_t live, int64_t reserved) {
      bool known = row.reserved_known();
      cells.push_back(known ? FormatBytes(reserved) : "-");
      cells.push_back(
          known ? FormatShare(D(Unused(live, reserved)), static_cast<double>(reserved))
                : "-");
    };
    add_reserved(row.peak_bytes(), row.reserved_at_peak_bytes());
    cells.push_back(FormatBytes(row.live_bytes()));
    add_reserved(row.live_bytes(), row.reserved_bytes());
    // Memory snapshots do not tell.
    cells.push_back(row.pid() == 0 ? "-" : absl::StrCat(row.pid()));
    cells.push_back(RankText(row.rank()));
    cells.push_back(RankText(row.device()));
    cells.push_back(Shortened(row.allocator(), 20));
    table.AddRow(std::move(cells));
  }
  return table.Text();
}

std::string SitesTable(const v1::MemoryRow& row, v1::GroupBy group_by) {
  Table table({">live", ">share", ">blocks", "where"});
  auto share = [&row](int64_t bytes) {
    return FormatShare(static_cast<double>(bytes),
                       static_cast<double>(row.peak_bytes()));
  };
  for (const v1::MemorySite& site : row.peak_sites()) {
    table.AddRow(
        {Marked(site, FormatBytes(site.bytes())), Marked(site, share(site.bytes())),
         Marked(site, FormatCount(
                          static_cast<uint64_t>(std::max<int64_t>(0, site.blocks())))),
         FormatSite(site.site(), group_by)});
    AddStacks(table, site, group_by);
  }
  if (row.peak_others_bytes() != 0) {
    table.AddRow({FormatBytes(row.peak_others_bytes()), share(row.peak_others_bytes()),
                  "", "(elsewhere)"});
  }
  return absl::StrCat(table.Text(), MarkNote(row.peak_sites()));
}

// A few of the points, the first and the last among them.
std::string PointsTable(const v1::MemoryRow& row) {
  const int count = row.points_size();
  if (count == 0) return "";
  std::vector<std::string> columns;
  if (row.points_are_steps()) columns.push_back(">step");
  columns.insert(columns.end(), {">at", ">live"});
  if (row.reserved_known()) columns.push_back(">reserved");
  Table table(std::move(columns));
  const int shown = std::min(count, kPoints);
  for (int i = 0; i < shown; ++i) {
    const v1::MemoryPoint& point =
        row.points(shown == 1 ? 0 : (count - 1) * i / (shown - 1));
    std::vector<std::string> cells;
    if (row.points_are_steps()) cells.push_back(absl::StrCat(point.step()));
    cells.push_back(FormatDuration(point.time_ns()));
    cells.push_back(FormatBytes(point.live_bytes()));
    if (row.reserved_known()) cells.push_back(FormatBytes(point.reserved_bytes()));
    table.AddRow(std::move(cells));
  }
  return absl::StrCat(
      row.points_are_steps() ? "Live at the ends of steps" : "Live over time", " (",
      Counted(static_cast<uint64_t>(count), "point"), ")\n", table.Text());
}

std::string Details(const v1::MemoryRow& row, v1::GroupBy group_by) {
  std::string text =
      absl::StrCat("\nPeak of ", NameOf(row), ": ", FormatBytes(row.peak_bytes()),
                   ", live at ", FormatDuration(row.peak_time_ns()), "\n",
                   SitesTable(row, group_by), PointsTable(row));
  if (row.has_growth()) absl::StrAppend(&text, GrowthWords(row), "\n");
  return text;
}

}  // namespace

std::string MemoryText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  const v1::Memory& memory = reply.memory();
  std::vector<const v1::MemoryRow*> rows;
  for (const v1::MemoryRow& row : memory.rows()) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->peak_bytes() > b->peak_bytes();
  });
  std::string text = OverviewTable(memory);
  for (const v1::MallocRetries& retries : memory.retries()) {
    absl::StrAppend(&text, RetryWords(retries), "\n");
  }
  for (size_t i = 0; i < rows.size() && i < kDetailed; ++i) {
    absl::StrAppend(&text, Details(*rows[i], group_by));
  }
  if (rows.size() > kDetailed) {
    absl::StrAppend(&text, "\nDetails of the other ", rows.size() - kDetailed,
                    ": --pid, --rank or --json\n");
  }
  absl::StrAppend(&text, SegmentsText(reply.job().imported()));
  return Answer(reply, "Memory: peaks and ends\n", text);
}

}  // namespace lull
