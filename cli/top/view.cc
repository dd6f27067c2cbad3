#include "cli/top/view.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/lines.h"
#include "cli/top/tables.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"
#include "daemon/words/step_words.h"

namespace lull {
namespace {

// An answer that is older than this is not what the job does now.
constexpr uint64_t kOldNs = 10'000'000'000;
// The table below the ranks keeps so many lines, its title included.
constexpr size_t kLeastTable = 6;

const char* const kHelp[] = {
    "q      leave; the job goes on",
    "p      pause, and go on",
    "1 - 5  the table below: gaps, syncs, host lines, waits, kernels; Tab: the next",
    "j k    scroll it (or the arrows)",
    "s      sort ranks: by rank, slowest step, least busy, most memory",
    "+ -    a longer or shorter part of the job: 10 s to 30 min, or all of it",
    "a d    wake a dormant job up (lull arm), put it to sleep (lull disarm)",
    "",
    "step   median; ~: not all steps could be looked at",
    "busy   the GPU, of traced time; \"busy over time\": '.' none of it ... '#' all",
    "sync   of the process's time: blocked in calls that wait for the GPU",
    "data   of the process's time: waiting for the next batch",
    "live   memory that is allocated now; peak: of the whole run",
    "",
    "Any key goes back.",
};

// "GPU busy 41.3 % of 24.6 s traced; idle: sync 12.1 %, data 8.0 %, ..."
std::string GpuLine(const v1::ReportReply& reply) {
  const v1::Gpu& gpu = reply.gpu();
  if (!HasGpuTruth(gpu)) return MissingLine(gpu);
  std::string line =
      absl::StrCat("GPU busy ", FormatShare(D(gpu.busy_ns()), D(gpu.traced_ns())),
                   " of ", FormatDuration(gpu.traced_ns()), " traced");
  const char* before = "; idle: ";
  for (const v1::CauseRow& row : reply.gaps().causes()) {
    absl::StrAppend(&line, before, CauseName(row.cause()), " ",
                    FormatShare(D(row.total_ns()), D(gpu.traced_ns())));
    before = ", ";
  }
  return line;
}

// At most `most` lines of `columns` each; the last one is cut by the screen.
void AddWrapped(const TopLine& line, size_t columns, size_t most,
                std::vector<TopLine>* screen) {
  std::string part;
  for (absl::string_view word : absl::StrSplit(line.text, ' ')) {
    if (most > 1 && !part.empty() && part.size() + 1 + word.size() > columns) {
      screen->push_back({part, line.style});
      part = "  ";
      --most;
    }
    absl::StrAppend(&part, part.empty() || part == "  " ? "" : " ", word);
  }
  screen->push_back({part, line.style});
}

std::string AdviceLine(const v1::ReportReply& reply) {
  if (reply.advice().findings().empty()) return "";
  const v1::Finding& first = reply.advice().findings(0);
  return absl::StrCat("First: ", Printable(first.finding()), ": ",
                      Printable(first.advice()));
}

// What measuring cost and what is missing; the loss first if there is one.
TopLine TrustLine(const v1::ReportReply& reply) {
  const std::string losses = LossesLine(reply.job(), reply.losses());
  // Nobody knows what recording an imported trace cost.
  if (reply.job().has_imported()) return {losses, TopStyle::kDim};
  const std::string cost = ShortCostLine(reply.overhead());
  if (!absl::StartsWith(losses, "Nothing lost")) {
    return {absl::StrCat(losses, " ", cost), TopStyle::kWarning};
  }
  return {absl::StrCat(cost, " ", losses), TopStyle::kDim};
}

TopLine StatusLine(const v1::ReportReply& reply, const TopState& state,
                   uint64_t age_ns) {
  if (!state.message.empty()) return {state.message, TopStyle::kWarning};
  if (reply.job().asleep()) {
    return {"The job sleeps: nothing is recorded. a wakes it up.", TopStyle::kWarning};
  }
  if (!reply.job().ended() && age_ns > kOldNs && !state.paused) {
    return {absl::StrCat("This is ", FormatDuration(age_ns),
                         " old: the collector does not answer."),
            TopStyle::kWarning};
  }
  if (!reply.job().ended() && IsLongWithoutAStep(reply.job())) {
    return {absl::StrCat(
                "No step has ended for ", FormatDuration(reply.job().since_step_ns()),
                ". Where its threads are: lull stacks ", ShortId(reply.job().id())),
            TopStyle::kWarning};
  }
  return {AdviceLine(reply), TopStyle::kPlain};
}

std::string TabsLine(const TopState& state) {
  std::string line;
  for (int i = 0; i < kTopTables; ++i) {
    const auto table = static_cast<TopTable>(i);
    absl::StrAppend(&line, i == 0 ? "" : "  ", table == state.table ? "[" : " ", i + 1,
                    " ", TableName(table), table == state.table ? "]" : " ");
  }
  return absl::StrCat(line, "  by ", OrderName(state.order), "  ? help");
}

// The title, and as many lines as there is room for; says how many are left out.
void AddTable(const std::vector<std::string>& table, size_t first, size_t room,
              std::vector<TopLine>* screen) {
  if (table.empty() || room == 0) return;
  const bool has_title = table.size() > 1;  // else it is a sentence
  if (has_title) screen->push_back({table[0], TopStyle::kHeading});
  const std::vector<std::string> rows(table.begin() + (has_title ? 1 : 0), table.end());
  size_t left = room - (has_title ? 1 : 0);
  first = std::min(first, rows.size() - 1);
  const bool all = rows.size() - first <= left;
  for (size_t i = first; i < rows.size() && left > (all ? 0 : 1); ++i, --left) {
    screen->push_back({rows[i], TopStyle::kPlain});
  }
  if (!all && left > 0) {
    const size_t shown = room - (has_title ? 1 : 0) - left;
    screen->push_back(
        {absl::StrCat("  ... ", rows.size() - first - shown, " more"), TopStyle::kDim});
  }
}

std::vector<TopLine> HelpScreen(size_t rows) {
  std::vector<TopLine> screen = {{"lull top: keys and columns", TopStyle::kTitle}};
  for (const char* line : kHelp) screen.push_back({line, TopStyle::kPlain});
  screen.resize(std::min(rows, screen.size()));
  return screen;
}

}  // namespace

std::vector<TopLine> TopScreen(const v1::ReportReply& reply, const TopState& state,
                               size_t rows, size_t columns, uint64_t age_ns) {
  if (state.help) return HelpScreen(rows);
  // On a small screen the tables come first.
  const size_t most = rows >= 20 ? 2 : 1;
  std::vector<TopLine> screen;
  screen.push_back(
      {absl::StrCat("[", SpanText(state.last_ns), state.paused ? ", paused] " : "] ",
                    JobLine(reply.job())),
       TopStyle::kTitle});
  AddWrapped({GpuLine(reply), TopStyle::kPlain}, columns, most, &screen);
  AddWrapped(TrustLine(reply), columns, most, &screen);
  AddWrapped(StatusLine(reply, state, age_ns), columns, rows >= 24 ? 3 : most, &screen);
  const std::vector<std::string> ranks = RanksTable(reply, state.order, columns);
  const std::vector<std::string> table = RowsTable(reply, state.table);
  // Below the table there is a line of keys.
  const size_t room = rows - std::min(rows, screen.size() + 1);
  const size_t for_table = std::min({table.size(), kLeastTable, room});
  const size_t for_ranks = std::min(ranks.size(), room - for_table);
  AddTable(ranks, 0, for_ranks, &screen);
  AddTable(table, state.first_row, room - for_ranks, &screen);
  if (rows == 0) return {};
  screen.resize(rows - 1);
  screen.push_back({TabsLine(state), TopStyle::kChosen});
  return screen;
}

}  // namespace lull
