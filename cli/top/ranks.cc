#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/render/table.h"
#include "cli/top/details.h"
#include "cli/top/tables.h"
#include "daemon/base/median.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// Cells of the picture of how busy the GPU was over time; its title is as wide.
constexpr size_t kCells = 14;

struct Rank {
  const v1::ProcessRow* process = nullptr;
  std::optional<uint64_t> step_ns;  // median
  bool steps_thinned = false;       // not all steps were in the answer
  int64_t live_bytes = 0, peak_bytes = 0;
  bool memory_known = false;
  std::string busy_over_time;
};

double BusyShare(const Rank& rank) {
  return Percent(D(rank.process->busy_ns()), D(rank.process->traced_ns()));
}

void AddStep(const v1::StepBand& band, Rank* rank) {
  std::vector<uint64_t> times(band.duration_ns().begin(), band.duration_ns().end());
  if (times.empty()) return;
  rank->steps_thinned = band.count() > times.size();
  rank->step_ns = LowerMedian(std::move(times));
}

// From the allocator that says most about the devices' memory of the program, else the
// host's tensors. One allocator's blocks lie in those of another.
void AddMemory(const v1::ReportReply& reply, Rank* rank) {
  for (const char* allocator : {"torch_cuda", "cuda", "torch_other", "torch_cpu"}) {
    for (const v1::MemoryRow& row : reply.memory().rows()) {
      if (row.pid() != rank->process->pid() || row.allocator() != allocator) continue;
      rank->live_bytes += row.live_bytes();
      rank->peak_bytes += row.peak_bytes();
      rank->memory_known = true;
    }
    if (rank->memory_known) return;
  }
}

// A character for a share of traced time: '.' for none of it, '#' for all.
char BusyCell(uint64_t busy_ns, uint64_t traced_ns) {
  constexpr absl::string_view kLevels = ".:-=+*%#";
  if (traced_ns == 0) return ' ';
  const double share = std::min(1.0, D(busy_ns) / D(traced_ns));
  return kLevels[static_cast<size_t>(share * static_cast<double>(kLevels.size() - 1) +
                                     0.5)];
}

// All devices of the process as one; bins go whole into the cell in which they begin.
std::string BusyOverTime(const v1::Timeline& timeline, uint32_t pid) {
  const uint64_t whole =
      timeline.end_ns() - std::min(timeline.start_ns(), timeline.end_ns());
  if (timeline.bin_ns() == 0 || whole == 0) return "";
  const uint64_t bins = (whole + timeline.bin_ns() - 1) / timeline.bin_ns();
  uint64_t busy[kCells] = {}, traced[kCells] = {};
  for (const v1::TimelineBand& band : timeline.bands()) {
    if (band.pid() != pid) continue;
    for (int i = 0; i < band.traced_ns_size(); ++i) {
      const size_t cell = std::min<size_t>(
          kCells - 1, static_cast<size_t>(static_cast<uint64_t>(i) * kCells / bins));
      traced[cell] += band.traced_ns(i);
      if (i < band.busy_ns_size()) busy[cell] += band.busy_ns(i);
    }
  }
  std::string text;
  for (size_t i = 0; i < kCells; ++i) text += BusyCell(busy[i], traced[i]);
  return text.find_first_not_of(' ') == std::string::npos ? "" : text;
}

std::vector<Rank> RanksOf(const v1::ReportReply& reply) {
  std::vector<Rank> ranks;
  const bool any =
      std::any_of(reply.processes().begin(), reply.processes().end(),
                  [](const v1::ProcessRow& row) { return row.gpu() || row.torch(); });
  const v1::Timeline& timeline = TopDetail(reply, kTopTimeline).timeline();
  for (const v1::ProcessRow& row : reply.processes()) {
    if (any && !row.gpu() && !row.torch()) continue;
    Rank rank;
    rank.process = &row;
    for (const v1::StepBand& band : timeline.steps()) {
      if (band.pid() == row.pid()) AddStep(band, &rank);
    }
    AddMemory(reply, &rank);
    rank.busy_over_time = BusyOverTime(timeline, row.pid());
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

// What is not known comes last in each order.
void Sort(TopOrder order, std::vector<Rank>* ranks) {
  auto key = [order](const Rank& rank) -> double {
    switch (order) {
      case TopOrder::kRank:
        return rank.process->rank() < 0 ? 1e12 : rank.process->rank();
      case TopOrder::kSlowestStep:
        return -D(rank.step_ns.value_or(0));
      case TopOrder::kLeastBusy:
        return rank.process->traced_ns() == 0 ? 200 : BusyShare(rank);
      case TopOrder::kMostMemory:
        return -static_cast<double>(rank.live_bytes);
    }
    return 0;
  };
  std::stable_sort(ranks->begin(), ranks->end(),
                   [&](const Rank& a, const Rank& b) { return key(a) < key(b); });
}

enum class Memory { kNone, kLive, kLiveAndPeak };

std::vector<std::string> Lines(const std::vector<Rank>& ranks, bool imported,
                               Memory shown) {
  std::vector<std::string> titles = {">rank", ">step", ">busy",         ">sync",
                                     ">data", ">gc",   "busy over time"};
  if (shown != Memory::kNone) titles.push_back(">live");
  if (shown == Memory::kLiveAndPeak) titles.push_back(">peak");
  Table table(titles);
  for (const Rank& rank : ranks) {
    const v1::ProcessRow& row = *rank.process;
    auto share = [recorded = D(RecordedNs(row))](uint64_t part) {
      return FormatShare(D(part), recorded);
    };
    auto memory = [&](int64_t bytes) {
      return rank.memory_known ? FormatBytes(bytes) : "-";
    };
    std::vector<std::string> cells = {
        row.rank() < 0 ? absl::StrCat("pid ", row.pid()) : absl::StrCat(row.rank()),
        rank.step_ns
            ? absl::StrCat(rank.steps_thinned ? "~" : "", FormatDuration(*rank.step_ns))
            : "-",
        FormatShare(D(row.busy_ns()), D(row.traced_ns())),
        share(row.blocked_ns()),
        imported ? "-" : share(row.data_wait_ns()),
        imported ? "-" : share(row.gc_ns()),
        rank.busy_over_time};
    if (shown != Memory::kNone) cells.push_back(memory(rank.live_bytes));
    if (shown == Memory::kLiveAndPeak) cells.push_back(memory(rank.peak_bytes));
    table.AddRow(std::move(cells));
  }
  return table.Lines();
}

}  // namespace

std::vector<std::string> RanksTable(const v1::ReportReply& reply, TopOrder order,
                                    size_t columns) {
  std::vector<Rank> ranks = RanksOf(reply);
  Sort(order, &ranks);
  // A trace has no waits of this kind, and no collections.
  const bool imported = reply.job().has_imported();
  // In 80 columns the newest cell is worth more than the peak.
  for (const Memory shown : {Memory::kLiveAndPeak, Memory::kLive}) {
    std::vector<std::string> lines = Lines(ranks, imported, shown);
    if (std::all_of(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.size() <= columns; })) {
      return lines;
    }
  }
  return Lines(ranks, imported, Memory::kNone);
}

}  // namespace lull
