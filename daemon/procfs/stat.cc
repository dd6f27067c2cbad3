#include "daemon/procfs/stat.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lull {

absl::string_view StatField(absl::string_view stat, int number) {
  size_t bracket = stat.rfind(')');
  if (bracket == absl::string_view::npos || number < kStatState) return {};
  stat.remove_prefix(bracket + 1);
  for (int at = kStatState;; ++at) {
    stat.remove_prefix(std::min(stat.find_first_not_of(" \n"), stat.size()));
    absl::string_view field = stat.substr(0, stat.find_first_of(" \n"));
    if (at == number || field.empty()) return field;
    stat.remove_prefix(field.size());
  }
}

absl::string_view StatusField(absl::string_view status, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":")) {
      return absl::StripAsciiWhitespace(line);
    }
  }
  return {};
}

}  // namespace lull
