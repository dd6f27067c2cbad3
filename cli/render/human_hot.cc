#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/hot.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/memory_words.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

std::string ShareOfTime(uint64_t part_ns, uint64_t whole_ns) {
  return FormatShare(D(part_ns), D(whole_ns));
}

std::string RolesTable(const v1::Hot& reply) {
  Table table(
      {"threads", ">samples", ">time", ">running", ">ready", ">blocked", ">no line"});
  for (const v1::HotRole& role : reply.roles()) {
    table.AddRow({RoleKey(role.role()), FormatCount(role.samples()),
                  FormatDuration(role.time_ns()),
                  ShareOfTime(role.running_ns(), role.time_ns()),
                  ShareOfTime(role.ready_ns(), role.time_ns()),
                  ShareOfTime(role.blocked_ns(), role.time_ns()),
                  ShareOfTime(role.no_python_ns() + role.failed_ns(), role.time_ns())});
  }
  return table.Text();
}

std::string LinesTable(const v1::Hot& reply, v1::GroupBy group_by) {
  if (reply.lines().empty()) return "  No sample has a line of Python.\n";
  Table table({">self", ">total", ">running", ">ready", ">blocked", ">samples",
               "threads", "where"});
  for (const v1::HotLine& line : reply.lines()) {
    const bool cut = line.cut() && group_by == v1::GROUP_BY_STACK;
    table.AddRow(
        {line.has_self() ? FormatSampled(line.self()) : "-",
         line.has_total() ? FormatShare(line.total().percent(), 100) : "-",
         ShareOfTime(line.running_ns(), line.total_ns()),
         ShareOfTime(line.ready_ns(), line.total_ns()),
         ShareOfTime(line.blocked_ns(), line.total_ns()), FormatCount(line.samples()),
         RoleKey(line.role()),
         absl::StrCat(FormatSite(line.site(), group_by), cut ? " (cut)" : "")});
    AddStacks(table, line, group_by);
  }
  return table.Text();
}

// What is known to be off: of samples that were late, cut or failed.
std::string KnownToBeOff(const v1::Hot& reply) {
  const v1::HotSamples& counters = reply.counters();
  std::vector<std::string> parts;
  auto add = [&parts](uint64_t count, absl::string_view what) {
    if (count > 0) parts.push_back(absl::StrCat(FormatCount(count), " ", what));
  };
  add(counters.late(), "taken more than 1 ms late");
  add(counters.cut(), "cut (they count in total, and for no line's own time)");
  add(counters.failed(), "failed");
  add(counters.skipped(), "never taken");
  std::string text = absl::StrCat(
      "Samples of the whole run: ", FormatCount(counters.taken()), "; ",
      parts.empty() ? "none late, cut or failed" : absl::StrJoin(parts, ", "), ".");
  if (counters.lowered() > 0) {
    absl::StrAppend(&text, " Their rate was lowered ",
                    Counted(counters.lowered(), "time"),
                    " to hold the overhead budget.");
  }
  if (reply.denied_processes() > 0) {
    absl::StrAppend(&text, " Not sampled for want of rights: ",
                    Counted(reply.denied_processes(), "process"), ".");
  }
  if (reply.unreadable_processes() > 0) {
    absl::StrAppend(&text, " Not sampled, as their interpreter is not known: ",
                    Counted(reply.unreadable_processes(), "process"), ".");
  }
  const bool few =
      std::any_of(reply.lines().begin(), reply.lines().end(),
                  [](const v1::HotLine& line) { return !line.has_total(); });
  if (few) absl::StrAppend(&text, " Below 30 samples there are no shares.");
  return Wrapped(text, 0);
}

}  // namespace

std::string HotText(const v1::ReportReply& reply, v1::GroupBy group_by) {
  const v1::Hot& hot = reply.hot();
  return absl::StrCat(
      Answer(
          reply,
          absl::StrCat("Host time by kind of thread",
                       hot.region().empty()
                           ? ""
                           : absl::StrCat(", in region ", Printable(hot.region())),
                       "\n", RolesTable(hot), "\n"),
          absl::StrCat(group_by == v1::GROUP_BY_LINE       ? "By line"
                       : group_by == v1::GROUP_BY_FUNCTION ? "By function"
                                                           : "By stack",
                       ", of the time of its kind of thread; ± is the 95 % interval\n",
                       LinesTable(hot, group_by))),
      KnownToBeOff(hot));
}

std::string FoldedText(const v1::ReportReply& reply) {
  std::string text;
  for (const v1::HotLine& line : reply.hot().lines()) {
    for (auto frame = line.stack().rbegin(); frame != line.stack().rend(); ++frame) {
      absl::StrAppend(&text, frame == line.stack().rbegin() ? "" : ";",
                      FoldedFrame(*frame));
    }
    // Never 0: that is no weight to the tools that read this.
    absl::StrAppend(&text, line.cut() ? ";[cut]" : "", " ",
                    std::max<uint64_t>(1, line.self_ns() / 1000), "\n");
  }
  return text;
}

std::string FoldedFrame(const v1::Frame& frame) {
  std::string text = frame.function().empty() ? "(unknown)" : frame.function();
  if (!frame.file().empty()) {  // a node of the backward pass has none
    absl::StrAppend(&text, " (", frame.file(), ":", frame.line(), ")");
  }
  for (char& c : text) {
    if (c == ';') c = ',';
  }
  return Printable(text);
}

}  // namespace lull
