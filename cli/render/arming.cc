#include "cli/render/arming.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/render/json_parts.h"
#include "daemon/words/format.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

// Both parts in one unit, or else one cannot see how they compare.
std::string Seconds(uint64_t ns) {
  return absl::StrFormat("%.1f s", static_cast<double>(ns) / 1e9);
}

}  // namespace

std::string ArmedText(const v1::ArmReply& reply) {
  std::string text = absl::StrCat(reply.armed() ? "armed: job " : "asleep: job ",
                                  ShortId(reply.job().id()));
  if (!reply.job().name().empty()) {
    absl::StrAppend(&text, " \"", Shortened(reply.job().name(), 60), "\"");
  }
  absl::StrAppend(&text, ", ", Counted(reply.processes(), "process"));
  if (reply.armed() && reply.for_ns() > 0) {
    absl::StrAppend(&text, ", for ", FormatDuration(reply.for_ns()));
  }
  if (reply.processes() == 0) {
    absl::StrAppend(&text, reply.armed() ? " (those that come are armed as they come)"
                                         : " (those that come will sleep)");
  }
  return text + "\n";
}

Json ArmedJson(const v1::ArmReply& reply) {
  return {{"job", JobJson(reply.job())},
          {"armed", reply.armed()},
          {"processes", reply.processes()},
          {"for_ms", MsIf(reply.armed() && reply.for_ns() > 0, reply.for_ns())}};
}

std::string RecordedText(const v1::Job& job) {
  if (!job.partly_recorded()) return "";
  return absl::StrCat("recorded ", Seconds(job.recorded_ns()), " of ",
                      Seconds(job.duration_ns()), " (", FormatCount(job.stretches()),
                      job.stretches() == 1 ? " stretch)" : " stretches)");
}

}  // namespace lull
