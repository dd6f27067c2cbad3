#include "cli/render/imported.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/table.h"
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

std::string CannotBeTold(const v1::ImportInfo& told,
                         std::initializer_list<const char*> sentences) {
  std::string text;
  for (const char* sentence : sentences) {
    const auto& all = told.not_applied();
    if (std::find(all.begin(), all.end(), sentence) == all.end()) continue;
    absl::StrAppend(&text, "  Cannot be told: ", sentence, ".\n");
  }
  return text;
}

std::string SegmentsText(const v1::ImportInfo& told) {
  if (told.segments().empty()) return "";
  Table table({">reserved", ">segments", ">in use", ">asked for", ">waiting",
               ">fragments", ">of it", ">free segments", ">largest free", ">rank",
               ">device"});
  for (const v1::SegmentUse& use : told.segments()) {
    table.AddRow(
        {FormatBytes(static_cast<int64_t>(use.reserved())), FormatCount(use.segments()),
         FormatBytes(static_cast<int64_t>(use.allocated())),
         FormatBytes(static_cast<int64_t>(use.requested())),
         FormatBytes(static_cast<int64_t>(use.pending())),
         FormatBytes(static_cast<int64_t>(use.free_in_used())),
         FormatShare(static_cast<double>(use.free_in_used()),
                     static_cast<double>(use.reserved())),
         FormatBytes(static_cast<int64_t>(use.free_segments())),
         FormatBytes(static_cast<int64_t>(use.largest_free())),
         use.rank() < 0 ? "-" : absl::StrCat(use.rank()), absl::StrCat(use.device())});
  }
  return absl::StrCat(
      "\nHeld by PyTorch's allocator when the snapshot was taken\n", table.Text(),
      "Waiting: freed, but another stream is not done with it. Fragments: free, in "
      "segments of\nwhich a part is in use, so that they cannot go back to the "
      "device.\n");
}

}  // namespace lull
