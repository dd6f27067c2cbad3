#include "daemon/export/trace_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/text.h"

namespace lull::exports {

const char* NameOf(Measure measure) {
  switch (measure) {
    case Measure::kBusy:
      return "busy";
    case Measure::kLive:
      return "live tensors";
    case Measure::kReserved:
      return "reserved by PyTorch";
    case Measure::kHostLive:
      return "live tensors of the host";
    case Measure::kAllocated:
      return "allocated on GPUs";
    case Measure::kPinned:
      return "pinned memory";
  }
  return "?";
}

// Without folders: Perfetto's UI shows what is behind the last slash. Viewers cut what
// is long.
std::string ExportedProcess::title() const {
  constexpr size_t kMost = 60;
  std::string title = rank >= 0 ? absl::StrCat("rank ", rank, ":") : "";
  for (absl::string_view word : absl::StrSplit(command, ' ', absl::SkipEmpty())) {
    const size_t slash = word.rfind('/');
    if (slash != absl::string_view::npos) word.remove_prefix(slash + 1);
    absl::StrAppend(&title, title.empty() ? "" : " ", word);
    if (title.size() > kMost) break;
  }
  title = CleanText(title, kMost);
  if (command.empty()) absl::StrAppend(&title, title.empty() ? "" : " ", "pid ", pid);
  if (shown_pid != pid) absl::StrAppend(&title, " (pid ", pid, " of its host)");
  return title;
}

}  // namespace lull::exports
