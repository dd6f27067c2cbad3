#include "cli/render/summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/gpu_words.h"
#include "cli/render/lines.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr int kRowsPerCause = 2;
constexpr int kIdleCauses = 3;
constexpr int kAdviceLines = 2;

class Summary {
 public:
  Summary(const v1::ReportReply& reply, bool colour) : reply_(reply), colour_(colour) {}

  std::string Text() {
    Line(Bold(JobLine(reply_.job())));
    std::string phase = PhaseLine(reply_);
    if (!phase.empty()) Line(phase);
    if (HasGpuTruth(reply_.gpu())) {
      Line(Bold(BusyLine(reply_.gpu())));
      Line(CoverageLine(reply_.job(), reply_.gpu()));
      IdleCauses();
    } else {
      Line(ProcessesLine());
      Causes();
      Allocations();
      Line(MissingLine(reply_.gpu()));
    }
    Remarks();
    AdviceLines();
    Line(Losses());
    Line(ShortCostLine(reply_.overhead()));
    std::string job = ShortId(reply_.job().id());
    Line(HasGpuTruth(reply_.gpu())
             ? absl::StrCat("More: lull report ", job, ", lull gaps ", job)
             : absl::StrCat("More: lull report ", job));
    return std::move(text_);
  }

 private:
  void Line(absl::string_view line) { absl::StrAppend(&text_, "lull: ", line, "\n"); }

  std::string Bold(absl::string_view text) const {
    return colour_ ? absl::StrCat("\x1b[1m", text, "\x1b[0m") : std::string(text);
  }
  std::string Warning(absl::string_view text) const {
    return colour_ ? absl::StrCat("\x1b[33m", text, "\x1b[0m") : std::string(text);
  }

  std::string ProcessesLine() const {
    uint32_t at_work = reply_.job().working_processes();
    std::string line =
        absl::StrCat(reply_.job().processes(),
                     reply_.job().processes() == 1 ? " process" : " processes",
                     " reported, ", at_work, " did GPU work or allocated tensors; ",
                     FormatCount(reply_.launches()), " launches");
    return line;
  }

  // What did not happen is not worth a line.
  void Cause(absl::string_view name, uint64_t total_ns, absl::string_view times) {
    if (total_ns == 0) return;
    Line(absl::StrFormat("%-16s %9s  %7s  %s", name, FormatDuration(total_ns),
                         FormatShare(static_cast<double>(total_ns),
                                     static_cast<double>(reply_.shares().working_ns())),
                         times));
  }

  // Why the GPU idled: the causes that cost most, each at its worst place.
  void IdleCauses() {
    uint64_t idle = reply_.gpu().idle_ns();
    int rows = std::min(kIdleCauses, reply_.gaps().causes_size());
    for (int i = 0; i < rows; ++i) {
      const v1::CauseRow& row = reply_.gaps().causes(i);
      Line(absl::StrFormat(
          "%s %-14s %9s  %7s  %s", i == 0 ? "idle:" : "     ", CauseName(row.cause()),
          FormatDuration(row.total_ns()),
          FormatShare(static_cast<double>(row.total_ns()), static_cast<double>(idle)),
          WorstOf(row.cause())));
    }
  }

  std::string WorstOf(v1::GapCause cause) const {
    for (const v1::GapRow& gap : reply_.gaps().gaps()) {
      if (gap.cause() == cause) return BlameOf(gap, v1::GROUP_BY_LINE);
    }
    return "";
  }

  // What an engineer should know whatever the times are.
  void Remarks() {
    if (!reply_.non_finite().empty()) {
      Line(Warning(NonFiniteLine(reply_.non_finite(0))));
    }
    std::string aside = StoodAsideLine(reply_.gpu());
    if (!aside.empty()) Line(aside);
    std::string lost = GpuLossesLine(reply_.gpu());
    if (!lost.empty()) Line(lost);
  }

  void Detail(uint64_t ns, absl::string_view what, const v1::Site& site) {
    Line(absl::StrFormat("    %9s  %s  %s", FormatDuration(ns), Shortened(what, 40),
                         FormatSite(site)));
  }

  void Causes() {
    if (reply_.syncs().total_calls() > 0) {
      Cause("blocked on GPU", reply_.syncs().total_blocked_ns(),
            absl::StrCat("in ", FormatCount(reply_.syncs().total_calls()), " calls"));
      int rows = std::min(kRowsPerCause, reply_.syncs().sync_points_size());
      for (int i = 0; i < rows; ++i) {
        const v1::SyncPoint& point = reply_.syncs().sync_points(i);
        Detail(point.blocked_ns(), point.api(), point.site());
      }
    }
    Cause("data waits", reply_.shares().data_wait_ns(), FirstDataWait());
    uint64_t waits = reply_.waits().total_ns();
    Cause("other waits", waits - std::min(waits, reply_.shares().data_wait_ns()),
          FirstOtherWait());
    Cause("GC pauses", reply_.gc().total_ns(),
          absl::StrCat("in ", FormatCount(reply_.gc().total_count()), " pauses"));
  }

  std::string FirstDataWait() const {
    for (const v1::HostWait& wait : reply_.waits().host_waits()) {
      if (wait.kind() == "data") return absl::StrCat("at ", FormatSite(wait.site()));
    }
    return "";
  }

  std::string FirstOtherWait() const {
    for (const v1::HostWait& wait : reply_.waits().host_waits()) {
      if (wait.kind() == "data") continue;
      return absl::StrCat("most for ", Shortened(wait.kind(), 12), " at ",
                          FormatSite(wait.site()));
    }
    return "";
  }

  void Allocations() {
    const v1::Allocations& allocations = reply_.allocations();
    if (allocations.total_calls() == 0) return;
    std::string line =
        absl::StrFormat("%-16s %9s  in %s allocations", "allocated",
                        FormatBytes(static_cast<int64_t>(allocations.total_bytes())),
                        FormatCount(allocations.total_calls()));
    if (allocations.allocation_sites_size() > 0) {
      absl::StrAppend(&line, ", most at ",
                      FormatSite(allocations.allocation_sites(0).site()));
    }
    Line(line);
  }

  void AdviceLines() {
    const auto& findings = reply_.advice().findings();
    if (findings.empty()) Line(absl::StrCat("Change first: ", NoAdvice(reply_)));
    for (int i = 0; i < std::min(kAdviceLines, findings.size()); ++i) {
      Line(absl::StrCat(Bold(i == 0 ? "Change first: " : "Then: "),
                        findings[i].finding(), ": ", findings[i].advice()));
    }
  }

  std::string Losses() const {
    const v1::Losses& losses = reply_.losses();
    std::string line = LossesLine(reply_.job(), losses);
    return losses.events_lost() > 0 || losses.corrupt_segments() > 0 ? Warning(line)
                                                                     : line;
  }

  const v1::ReportReply& reply_;
  bool colour_;
  std::string text_;
};

}  // namespace

std::string SummaryText(const v1::ReportReply& reply, bool colour) {
  return Summary(reply, colour).Text();
}

}  // namespace lull
