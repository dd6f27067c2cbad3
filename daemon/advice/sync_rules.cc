#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/advice/rules.h"
#include "daemon/advice/sync_kind.h"
#include "daemon/advice/thresholds.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// One line often blocks twice: PyTorch copies, then waits for the stream.
struct Line {
  const v1::SyncPoint* first = nullptr;  // costliest of the line
  SyncKind kind = SyncKind::kUnknown;
  uint64_t wasted_ns = 0;
  uint64_t needed_ns = 0;
  uint64_t blocked_ns = 0;
  uint64_t calls = 0;
};
using Lines = std::map<std::tuple<std::string, int32_t, std::string>, Line>;

Lines ByLine(const v1::Syncs& reply) {
  Lines lines;
  for (const v1::SyncPoint& point : reply.sync_points()) {
    const v1::Site& site = point.site();
    Line& line = lines[{site.file(), site.line(), site.function()}];
    SyncKind kind = KindOf(point);
    if (line.kind == SyncKind::kUnknown) line.kind = kind;
    if (line.first == nullptr || point.wasted_ns() > line.first->wasted_ns()) {
      line.first = &point;
      if (kind != SyncKind::kUnknown) line.kind = kind;
    }
    line.wasted_ns += point.wasted_ns();
    line.needed_ns += point.needed_ns();
    line.blocked_ns += point.judged_blocked_ns();
    line.calls += point.judged_calls();
  }
  return lines;
}

}  // namespace

void WastefulSyncs(const Evidence& evidence, Findings& found) {
  for (const auto& [site, line] : ByLine(evidence.reply().syncs())) {
    if (!evidence.ExceedsTraced(line.wasted_ns, kWastedSyncPercent)) continue;
    *AddFinding(
         found, "sync",
         absl::StrCat(WhatItIs(line.kind), " at ", FormatSite(line.first->site()),
                      " leaves the GPU idle ", evidence.OfTraced(line.wasted_ns),
                      " of traced time; ", FormatCount(line.calls), " calls, blocked ",
                      FormatDuration(line.blocked_ns), ", needed ",
                      FormatDuration(line.needed_ns)),
         HowToAvoid(line.kind), line.wasted_ns, true)
         .mutable_site() = line.first->site();
  }
}

}  // namespace lull
