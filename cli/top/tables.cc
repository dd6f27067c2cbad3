#include "cli/top/tables.h"

#include "absl/strings/str_cat.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/table.h"
#include "cli/top/details.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"
#include "daemon/words/function_name.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

constexpr uint32_t kRows = 100;

// "proj/train.py:42 step": a path in full would leave no room for the line on a narrow
// screen.
std::string Place(const v1::Site& site) {
  std::string text = CompactSite(site, v1::GROUP_BY_LINE);
  if (!site.file().empty() && !site.function().empty()) {
    absl::StrAppend(&text, " ", Shortened(ShortFunction(site.function()), 60));
  }
  if (site.has_forward_site()) {
    absl::StrAppend(&text, " of ", Place(site.forward_site()));
  }
  return text;
}

// The line first: what is cut off is the call, which the cause tells already.
std::string Blame(const v1::GapRow& gap) {
  const bool samples = !gap.doing().empty() && gap.cause() != v1::GAP_CAUSE_DATA_WAIT;
  if (samples || !HasCulprit(gap)) return BlameOf(gap, v1::GROUP_BY_LINE);
  const std::string place = Place(gap.culprit());
  if (gap.culprit_api().empty()) return place;
  return absl::StrCat(place, ", ", Shortened(gap.culprit_api(), 40));
}

std::vector<std::string> Gaps(const v1::ReportReply& reply) {
  if (!HasGpuTruth(reply.gpu())) {
    return {absl::StrCat("  No GPU truth: ", Printable(reply.gpu().missing()))};
  }
  if (reply.gaps().gaps().empty()) return {"  The GPU never idled."};
  Table table({">idle", ">share", "cause", "line that did the work, or waited"});
  for (const v1::GapRow& gap : reply.gaps().gaps()) {
    table.AddRow({FormatDuration(gap.total_ns()),
                  FormatShare(D(gap.total_ns()), D(reply.gpu().idle_ns())),
                  CauseName(gap.cause()), Blame(gap)});
  }
  return table.Lines();
}

std::vector<std::string> Syncs(const v1::ReportReply& reply) {
  if (reply.syncs().sync_points().empty()) return {"  No call blocked on the GPU."};
  Table table({">blocked", ">wasted", ">calls", "call", "where"});
  for (const v1::SyncPoint& point : reply.syncs().sync_points()) {
    table.AddRow({FormatDuration(point.blocked_ns()),
                  point.judged_calls() > 0 ? FormatDuration(point.wasted_ns()) : "-",
                  FormatCount(point.calls()), Shortened(point.api(), 24),
                  Place(point.site())});
  }
  return table.Lines();
}

std::vector<std::string> Host(const v1::ReportReply& reply) {
  const v1::ReportReply& detail = TopDetail(reply, kTopHot);
  if (!detail.untold().empty()) return {absl::StrCat("  ", Printable(detail.untold()))};
  if (detail.hot().lines().empty()) return {"  No sample has a line of Python."};
  Table table({">self", ">total", ">blocked", "threads", "where"});
  for (const v1::HotLine& line : detail.hot().lines()) {
    table.AddRow({line.has_self() ? FormatShare(line.self().percent(), 100) : "-",
                  line.has_total() ? FormatShare(line.total().percent(), 100) : "-",
                  FormatShare(D(line.blocked_ns()), D(line.total_ns())),
                  RoleKey(line.role()), Place(line.site())});
  }
  return table.Lines();
}

std::vector<std::string> Waits(const v1::ReportReply& reply) {
  if (reply.waits().host_waits().empty()) {
    return {"  No wait was longer than the threshold."};
  }
  Table table({">waited", ">share", ">waits", "for", "where"});
  for (const v1::HostWait& wait : reply.waits().host_waits()) {
    table.AddRow({FormatDuration(wait.total_ns()),
                  FormatShare(D(wait.total_ns()), D(reply.waits().total_ns())),
                  FormatCount(wait.count()), Shortened(wait.kind(), 12),
                  Place(wait.site())});
  }
  return table.Lines();
}

std::vector<std::string> Kernels(const v1::ReportReply& reply) {
  if (reply.kernels().kernels().empty()) return {"  No kernel was traced."};
  // On a narrow screen names are cut, and not lines.
  Table table({">time", ">share", ">calls", "launched at", "kernel"});
  for (const v1::KernelRow& kernel : reply.kernels().kernels()) {
    table.AddRow({FormatDuration(kernel.total_ns()),
                  FormatShare(D(kernel.total_ns()), D(reply.kernels().total_ns())),
                  FormatCount(kernel.calls()),
                  CompactSite(kernel.site(), v1::GROUP_BY_LINE),
                  ShortKernel(kernel.name(), 60)});
  }
  return table.Lines();
}

}  // namespace

v1::ReportRequest TopRequest(const std::string& job) {
  v1::ReportRequest request;
  request.set_job(job);
  request.set_top(kRows);
  request.set_phase(v1::PHASE_ALL);
  for (v1::Section section : kTopDetails) {
    auto* detail = request.add_details();
    detail->set_section(section);
    detail->set_top(kRows);
  }
  return request;
}

std::vector<std::string> RowsTable(const v1::ReportReply& reply, TopTable table) {
  switch (table) {
    case TopTable::kGaps:
      return Gaps(reply);
    case TopTable::kSyncs:
      return Syncs(reply);
    case TopTable::kHost:
      return Host(reply);
    case TopTable::kWaits:
      return Waits(reply);
    case TopTable::kKernels:
      return Kernels(reply);
  }
  return {};
}

}  // namespace lull
