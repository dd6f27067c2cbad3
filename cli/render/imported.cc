#include "cli/render/imported.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

template <typename Counts>
std::string Listed(const Counts& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& row) {
    absl::StrAppend(out, row.what(), " ", FormatCount(row.count()));
  });
}

}  // namespace

std::string ImportedLine(const v1::ImportInfo& told) {
  uint64_t ignored = 0;
  for (const auto& row : told.ignored()) ignored += row.count();
  const std::string what =
      told.files_in_all() == 1 && told.files_size() == 1
          ? told.files(0)
          : absl::StrCat(FormatCount(told.files_in_all()), " files");
  return absl::StrCat(what, ": ", FormatCount(told.events()), " events of ",
                      told.format(), ", ", FormatCount(ignored), " of them not used");
}

std::vector<std::string> ImportedRemarks(const v1::ImportInfo& told) {
  std::vector<std::string> lines;
  lines.push_back(absl::StrCat("Imported: ", ImportedLine(told), "."));
  if (told.ignored_size() > 0) {
    lines.push_back(absl::StrCat("Not used: ", Listed(told.ignored()), "."));
  }
  if (told.found_size() > 0) {
    lines.push_back(absl::StrCat("Found: ", Listed(told.found()), "."));
  }
  if (told.line_is_function_start()) {
    lines.emplace_back(
        "Lines are those where the functions begin: the trace does not tell which line "
        "of a function ran.");
  }
  lines.push_back(absl::StrCat("Times are exact to ", told.resolution_ns(), " ns."));
  for (const std::string& rule : told.not_applied()) {
    lines.push_back(absl::StrCat("Cannot be told: ", rule, "."));
  }
  return lines;
}

}  // namespace lull
