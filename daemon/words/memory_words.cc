#include "daemon/words/memory_words.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"

namespace lull {

std::string Counted(uint64_t count, absl::string_view noun) {
  const char* many = absl::EndsWith(noun, "s") ? "es" : "s";
  return absl::StrCat(FormatCount(count), " ", noun, count == 1 ? "" : many);
}

std::string GrowthWords(const v1::MemoryRow& row) {
  const v1::MemoryGrowth& growth = row.growth();
  std::string text = absl::StrCat(
      Shortened(row.allocator(), 20), " grows by ",
      FormatBytes(static_cast<int64_t>(std::llround(growth.bytes_per_step()))),
      " a step, steadily from step ", growth.first_step(), " to ", growth.last_step(),
      " (", FormatBytes(growth.bytes()), " in all)");
  if (growth.sites().empty() || 2 * growth.sites(0).bytes() < growth.bytes()) {
    return text;
  }
  return absl::StrCat(text, ", ", growth.sites(0).estimated() ? "about " : "",
                      FormatBytes(growth.sites(0).bytes()), " of it at ",
                      FormatSite(growth.sites(0).site()));
}

std::string RetryWords(const v1::MallocRetries& retries) {
  std::string text =
      absl::StrCat("cudaMalloc found no memory ",
                   Counted(retries.failed_calls(), "time"), " in pid ", retries.pid());
  if (retries.retries() == 0) {
    return absl::StrCat(text, ", and no call tried again after freeing some");
  }
  return absl::StrCat(text, ": ", Counted(retries.retries(), "call"),
                      " tried again after freeing some, ",
                      FormatCount(retries.succeeded()), " with success, in ",
                      FormatDuration(retries.total_ns()), ", most at ",
                      FormatSite(retries.site()));
}

}  // namespace lull
