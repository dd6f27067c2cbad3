#include "daemon/words/cause_words.h"

#include "absl/strings/str_replace.h"
#include "daemon/words/enum_key.h"

namespace lull {

std::string CauseKey(v1::GapCause cause) {
  return cause == v1::GAP_CAUSE_DATA_WAIT ? "data" : KeyOf(cause);
}

std::string CauseName(v1::GapCause cause) {
  if (cause == v1::GAP_CAUSE_GC) return "GC pause";
  if (cause == v1::GAP_CAUSE_GIL_WAIT) return "GIL wait";
  if (cause == v1::GAP_CAUSE_LAUNCH_BOUND) return "launch-bound";
  return absl::StrReplaceAll(CauseKey(cause), {{"_", " "}});
}

}  // namespace lull
