#include "cli/render/colour.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/words/format.h"

namespace lull {

std::string Coloured(absl::string_view text) {
  constexpr char kBold[] = "\x1b[1m";
  constexpr char kYellow[] = "\x1b[33m";
  constexpr char kPlain[] = "\x1b[0m";
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::string coloured;
  for (size_t i = 0; i < lines.size(); ++i) {
    bool margin = !lines[i].empty() && lines[i][0] != ' ';
    bool headline = i == 0 || (margin && i + 1 < lines.size() &&
                               absl::StartsWith(lines[i + 1], " "));
    const char* colour = absl::StartsWith(lines[i], "LOST ") ? kYellow
                         : margin && headline                ? kBold
                                                             : "";
    absl::StrAppend(&coloured, i > 0 ? "\n" : "", colour, lines[i],
                    colour[0] != '\0' ? kPlain : "");
  }
  return coloured;
}

std::string WithoutOrders(absl::string_view text) {
  std::string result;
  const char* before = "";
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&result, before, Printable(line));
    before = "\n";
  }
  return result;
}

}  // namespace lull
