#include "cli/render/gpu_lines.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/render/arming.h"
#include "cli/render/gpu_words.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// The collector sends so many spans at most.
constexpr int kAllSpans = 1000;
constexpr size_t kSpansNamed = 3;

bool IsActive(const v1::TracingSpan& span) {
  return span.state() == v1::TRACING_STATE_ACTIVE;
}

bool IsYielded(const v1::TracingSpan& span) {
  return span.state() == v1::TRACING_STATE_YIELDED;
}

uint64_t EndOf(const v1::TracingSpan& span) {
  return span.start_ns() + span.duration_ns();
}

std::string FromTo(uint64_t from_ns, uint64_t to_ns) {
  return absl::StrCat(FormatDuration(from_ns), " to ", FormatDuration(to_ns));
}

// "in 9 windows between 3.10 s and 93.4 s", "in one window from ... to ...".
std::string Windows(const v1::Gpu& gpu) {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const v1::TracingSpan& span : gpu.spans()) {
    if (!IsActive(span)) continue;
    first = std::min(first, span.start_ns());
    last = std::max(last, EndOf(span));
  }
  uint32_t count = ActiveWindows(gpu);
  if (count == 0) return "";
  if (count == 1) return absl::StrCat(", from ", FromTo(first, last));
  return absl::StrFormat(", in %s%d windows between %s and %s",
                         gpu.spans_size() >= kAllSpans ? "at least " : "", count,
                         FormatDuration(first), FormatDuration(last));
}

const char* WhyAside(v1::TracingReason reason) {
  switch (reason) {
    case v1::TRACING_REASON_FOREIGN_CLOCK:
      return "another profiler's clock";
    case v1::TRACING_REASON_ERROR:
      return "an error of CUPTI";
    default:
      return "another profiler";
  }
}

// Who reads that a thing is missing wants to know what would bring it. The reasons are
// those of daemon/query/gpu_missing.cc; for one that is not known nothing is added.
const char* WhatToDo(const v1::Gpu& gpu) {
  if (gpu.mode() == v1::GPU_MODE_HOST) {
    return "; record with: lull run --gpu window";
  }
  if (absl::StrContains(gpu.missing(), "CUPTI library") ||
      absl::StrContains(gpu.missing(), "CUPTI refused")) {
    return "; `lull doctor` says what is there";
  }
  if (absl::StrContains(gpu.missing(), "no window")) {
    return "; run longer, or with a shorter --schedule, or --gpu continuous";
  }
  return "";
}

}  // namespace

std::optional<double> UtilizationPercent(const v1::Gpu& gpu) {
  if (!HasGpuTruth(gpu)) return std::nullopt;
  return Percent(static_cast<double>(gpu.busy_ns()),
                 static_cast<double>(gpu.traced_ns()));
}

uint32_t ActiveWindows(const v1::Gpu& gpu) {
  return static_cast<uint32_t>(
      std::count_if(gpu.spans().begin(), gpu.spans().end(), IsActive));
}

std::string BusyLine(const v1::Gpu& gpu) {
  double traced = static_cast<double>(gpu.traced_ns());
  std::string line =
      absl::StrCat("GPU busy ", FormatShare(static_cast<double>(gpu.busy_ns()), traced),
                   " of traced time (", FormatDuration(gpu.busy_ns()), " of ",
                   FormatDuration(gpu.traced_ns()), "; kernels ",
                   FormatShare(static_cast<double>(gpu.kernel_ns()), traced), ")");
  std::string verdict = VerdictText(gpu.verdict());
  return verdict.empty() ? line : absl::StrCat(line, ": ", verdict);
}

std::string CoverageLine(const v1::Job& job, const v1::Gpu& gpu) {
  std::string whole = FormatDuration(RecordedNs(job));
  if (gpu.devices() <= 1) {
    return absl::StrCat("GPU truth for ", FormatDuration(gpu.traced_ns()), " of ",
                        whole, Windows(gpu));
  }
  // Every process and device has its own windows; say what one of them saw.
  return absl::StrCat("GPU truth for ", FormatDuration(gpu.traced_ns() / gpu.devices()),
                      " of ", whole, " (mean of ", gpu.devices(), " GPUs)",
                      Windows(gpu));
}

std::string MissingLine(const v1::Gpu& gpu) {
  std::string why = Printable(absl::StripSuffix(gpu.missing(), "."));
  if (why.empty()) why = "nothing of a GPU was recorded";
  // A sentence of its own becomes part of this one; names in capitals stay.
  if (why.size() > 1 && absl::ascii_islower(static_cast<unsigned char>(why[1]))) {
    why[0] = absl::ascii_tolower(static_cast<unsigned char>(why[0]));
  }
  return absl::StrCat("No GPU truth: ", why, WhatToDo(gpu), ".");
}

std::string StoodAsideLine(const v1::Gpu& gpu) {
  std::vector<std::string> spans;
  size_t more = 0;
  const char* why = "another profiler";
  for (const v1::TracingSpan& span : gpu.spans()) {
    if (!IsYielded(span)) continue;
    if (spans.empty()) why = WhyAside(span.reason());
    if (spans.size() == kSpansNamed) {
      ++more;
      continue;
    }
    spans.push_back(
        absl::StrCat(FromTo(span.start_ns(), EndOf(span)), " (pid ", span.pid(), ")"));
  }
  if (spans.empty() && gpu.yielded_ns() == 0) return "";
  std::string line =
      absl::StrCat("Stood aside for ", why, " for ", FormatDuration(gpu.yielded_ns()));
  if (!spans.empty()) absl::StrAppend(&line, ": ", absl::StrJoin(spans, ", "));
  if (more > 0) absl::StrAppend(&line, " and ", more, " times more");
  return line;
}

std::string GpuLossesLine(const v1::Gpu& gpu) {
  std::vector<std::string> parts;
  auto add = [&parts](uint64_t count, absl::string_view what) {
    if (count > 0) parts.push_back(absl::StrCat(FormatCount(count), " ", what));
  };
  add(gpu.cupti_dropped(), "records dropped by CUPTI");
  add(gpu.records_lost(), "lost for want of room");
  add(gpu.records_bad(), "without sense, left out");
  add(gpu.late_operations(), "came too late to be judged");
  if (gpu.unknown_ns() > 0) {
    parts.push_back(absl::StrCat(FormatDuration(gpu.unknown_ns()),
                                 " of idle time that cannot be judged"));
  }
  if (parts.empty()) return "";
  return absl::StrCat("GPU records: ", absl::StrJoin(parts, "; "));
}

std::string GpuHead(const v1::Job& job, const v1::Gpu& gpu) {
  std::string text;
  auto add = [&text](const std::string& line) {
    if (!line.empty()) absl::StrAppend(&text, line, "\n");
  };
  if (HasGpuTruth(gpu)) {
    add(BusyLine(gpu));
    add(CoverageLine(job, gpu));
  } else {
    add(MissingLine(gpu));
  }
  add(StoodAsideLine(gpu));
  add(GpuLossesLine(gpu));
  return text;
}

std::string NonFiniteLine(const v1::NonFinite& first) {
  std::string line = absl::StrCat("First ", Shortened(first.value(), 12),
                                  " read back at ", FormatSite(first.site()), ": ");
  if (first.step_known()) absl::StrAppend(&line, "step ", first.step(), ", ");
  absl::StrAppend(&line, FormatDuration(first.time_ns()), " after the start");
  if (first.rank() >= 0) {
    absl::StrAppend(&line, " (rank ", first.rank(), ")");
  } else {
    absl::StrAppend(&line, " (pid ", first.pid(), ")");
  }
  return line;
}

}  // namespace lull
