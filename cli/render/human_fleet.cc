#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/render/fleet.h"
#include "cli/render/human_parts.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

// Of an idle gap, or of a late rank.
std::string CauseWords(const std::string& key) {
  if (const auto cause = FromKey<v1::GapCause>(key)) return CauseName(*cause);
  return Printable(absl::StrReplaceAll(key, {{"_", " "}}));
}

template <typename Row>
std::string SiteWords(const Row& row) {
  if (row.file().empty() && row.function().empty()) return "(no line is known)";
  v1::Site site;
  site.set_file(row.file());
  site.set_line(static_cast<int32_t>(row.line()));
  site.set_function(row.function());
  return FormatSite(site);
}

std::string LeftOutLine(int listed, uint64_t rows, const char* what) {
  if (rows == 0) return "";
  constexpr int kMostRows = 10'000;  // of a reply
  return absl::StrCat("  and ", FormatCount(rows), " more ", what, rows == 1 ? "" : "s",
                      listed < kMostRows ? " (--top)\n" : "\n");
}

std::string Ms(double ms) {
  constexpr double kMost = 1.8e13;  // as many milliseconds as nanoseconds can be told
  return FormatDuration(static_cast<uint64_t>(std::clamp(ms, 0.0, kMost) * 1e6));
}

bool IsEstimate(double estimated_ms, uint64_t seen_ns) {
  return estimated_ms * 1e6 > 1.01 * D(seen_ns);
}

// Idle time: where only a part of the job's time was traced, what that makes of all.
std::string IdleWords(double estimated_ms, uint64_t seen_ns) {
  return IsEstimate(estimated_ms, seen_ns) ? absl::StrCat("~", Ms(estimated_ms))
                                           : FormatDuration(seen_ns);
}

std::string ShareOf(double estimated_ms, const v1::FleetReply& reply) {
  return FormatShare(estimated_ms, reply.totals().estimated_ms());
}

std::string CausesText(const v1::FleetReply& reply) {
  Table table({">idle", ">share", ">seen", ">jobs", "cause"});
  for (const v1::FleetCause& row : reply.causes()) {
    table.AddRow({IdleWords(row.estimated_ms(), row.total_ns()),
                  ShareOf(row.estimated_ms(), reply), FormatDuration(row.total_ns()),
                  FormatCount(row.jobs()), CauseWords(row.cause())});
  }
  return absl::StrCat("\nIdle, by cause\n", table.Text());
}

std::string LinesText(const v1::FleetReply& reply) {
  Table table({">idle", ">share", ">seen", ">jobs", "cause", "line"});
  for (const v1::FleetLine& row : reply.lines()) {
    std::string site = SiteWords(row);
    if (!row.api().empty()) absl::StrAppend(&site, ", ", Shortened(row.api(), 40));
    table.AddRow({IdleWords(row.estimated_ms(), row.total_ns()),
                  ShareOf(row.estimated_ms(), reply), FormatDuration(row.total_ns()),
                  FormatCount(row.jobs()), CauseWords(row.cause()), site});
  }
  return absl::StrCat("\nIdle, by line\n", table.Text(),
                      LeftOutLine(reply.lines_size(), reply.lines_left_out(), "line"));
}

std::string GroupsText(const v1::FleetReply& reply, const std::string& by) {
  Table table({">idle", ">share", ">seen", ">jobs", ">GPU time", ">busy", by});
  for (const v1::FleetGroupRow& row : reply.groups()) {
    table.AddRow({IdleWords(row.estimated_ms(), row.idle_ns()),
                  ShareOf(row.estimated_ms(), reply), FormatDuration(row.idle_ns()),
                  FormatCount(row.jobs()), Ms(D(row.gpu_time_ms())),
                  FormatShare(D(row.busy_ns()), D(row.traced_ns())),
                  row.key().empty() ? "-" : Shortened(row.key(), 40)});
  }
  const char* what = by == "week"  ? " in which jobs ended (UTC, from Monday)"
                     : by == "day" ? " on which jobs ended (UTC)"
                     : by == "tag" ? ": a job counts for each of its tags"
                                   : "";
  return absl::StrCat(
      "\nIdle, by ", by, what, "\n", table.Text(),
      LeftOutLine(reply.groups_size(), reply.groups_left_out(), by.c_str()));
}

std::string JobRowsText(const v1::FleetReply& reply) {
  Table table({">idle", ">seen", ">of traced time", ">ranks", "job", "name", "started",
               "host", "user", "most of it"});
  for (const v1::FleetJob& row : reply.jobs()) {
    table.AddRow(
        {IdleWords(row.estimated_ms(), row.idle_ns()), FormatDuration(row.idle_ns()),
         FormatShare(D(row.idle_ns()), D(row.traced_ns())),
         row.ranks() == 0 ? "-" : FormatCount(row.ranks()), ShortId(row.id()),
         row.name().empty() ? "-" : Shortened(row.name(), 30),
         row.start_unix_ns() == 0 ? "-" : FormatUtc(row.start_unix_ns()),
         Shortened(row.host(), 30), Shortened(row.user(), 20),
         row.cause().empty()
             ? "-"
             : absl::StrCat(CauseWords(row.cause()), ", ",
                            FormatShare(D(row.cause_ns()), D(row.idle_ns())))});
  }
  return absl::StrCat("\nJobs with most idle time\n", table.Text(),
                      LeftOutLine(reply.jobs_size(), reply.jobs_left_out(), "job"));
}

std::string LateText(const v1::FleetReply& reply) {
  if (reply.late().empty()) return "";
  Table table({">cost to others", ">jobs", "host", "cause", "line"});
  for (const v1::FleetLate& row : reply.late()) {
    table.AddRow({FormatDuration(row.cost_ns()), FormatCount(row.jobs()),
                  Shortened(row.host(), 30), CauseWords(row.cause()), SiteWords(row)});
  }
  return absl::StrCat("\nLate ranks, by host\n", table.Text(),
                      LeftOutLine(reply.late_size(), reply.late_left_out(), "row"));
}

std::string WhereFrom(const v1::FleetReply& reply) {
  const v1::FleetTotals& totals = reply.totals();
  if (reply.store() == v1::FLEET_STORE_CLICKHOUSE) {
    return absl::StrCat("Of ", Counted(totals.collectors(), "collector"),
                        " that keep totals at ", Printable(reply.url()),
                        ", as of their last round.");
  }
  return "Of this collector alone; `lulld --clickhouse` keeps totals of many.";
}

std::string SeenLine(const v1::FleetTotals& totals) {
  if (totals.traced_ns() == 0) {
    return "In none of them a GPU was traced, or its records are still to come.";
  }
  std::string text = absl::StrCat(
      "In ", FormatCount(totals.traced_jobs()), " of them GPUs were traced, for ",
      FormatDuration(totals.traced_ns()), "; their processes had them for ",
      Ms(D(totals.gpu_time_ms())), ". ",
      FormatShare(D(totals.busy_ns()), D(totals.traced_ns())),
      " of the traced time was busy, ", FormatDuration(totals.idle_ns()), " idle; ",
      FormatShare(D(totals.explained_ns()), D(totals.idle_ns())),
      " of the idle time is explained.");
  if (totals.late_cost_ns() > 0) {
    absl::StrAppend(&text, " Ranks waited ", FormatDuration(totals.late_cost_ns()),
                    " for late ones; where NCCL waits in kernels, that is busy time.");
  }
  return text;
}

// Whether any row has a "~".
bool HasEstimates(const v1::FleetReply& reply) {
  const auto total = [](const auto& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const auto& row) {
      return IsEstimate(row.estimated_ms(), row.total_ns());
    });
  };
  const auto idle = [](const auto& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const auto& row) {
      return IsEstimate(row.estimated_ms(), row.idle_ns());
    });
  };
  return total(reply.causes()) || total(reply.lines()) || idle(reply.groups()) ||
         idle(reply.jobs());
}

std::string NotesText(const v1::FleetReply& reply) {
  std::string text;
  if (HasEstimates(reply)) {
    absl::StrAppend(&text, "\n",
                    Wrapped("~ estimated: what was seen in traced time, as if the rest "
                            "of each job's GPU time were like it.",
                            0));
  }
  if (reply.totals().events_lost() > 0) {
    absl::StrAppend(&text,
                    "\nIncomplete: ", Counted(reply.totals().events_lost(), "event"),
                    " were lost.\n");
  }
  if (reply.damaged_jobs() > 0) {
    absl::StrAppend(&text, "\nWithout ", Counted(reply.damaged_jobs(), "job"),
                    " whose rows in the database are damaged.\n");
  }
  return text;
}

}  // namespace

std::string FleetText(const v1::FleetReply& reply, const v1::FleetRequest& request,
                      const std::string& asked) {
  const v1::FleetTotals& totals = reply.totals();
  if (totals.jobs() == 0) {
    return absl::StrCat("There is no job ", asked, ".\n", Wrapped(WhereFrom(reply), 0),
                        NotesText(reply));
  }
  const std::string live =
      totals.live_jobs() == 0
          ? ""
          : absl::StrCat(", ", FormatCount(totals.live_jobs()), " of which ",
                         totals.live_jobs() == 1 ? "goes on," : "go on,");
  std::string text =
      Wrapped(absl::StrCat(Counted(totals.jobs(), "job"), " ", asked, live, " on ",
                           Counted(totals.hosts(), "host"), "."),
              0);
  absl::StrAppend(&text, Wrapped(WhereFrom(reply), 0), Wrapped(SeenLine(totals), 0));
  if (totals.idle_ns() > 0) {
    absl::StrAppend(&text, CausesText(reply), LinesText(reply),
                    GroupsText(reply, KeyOf(request.group_by())));
  }
  return absl::StrCat(text, JobRowsText(reply), LateText(reply), NotesText(reply));
}

}  // namespace lull
