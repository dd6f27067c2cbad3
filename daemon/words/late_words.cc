#include "daemon/words/late_words.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

struct Words {
  const char* cause;
  const char* words;
};
constexpr Words kWords[] = {
    {"sleep", "sleeping"},
    {"data", "waiting for data"},
    {"gc", "in garbage collections"},
    {"gil", "waiting for the GIL"},
    {"lock", "waiting for a lock"},
    {"io", "reading or polling"},
    {"process", "waiting for a child process"},
    {"sync", "waiting for the GPU"},
    {"allocator", "allocating memory"},
    {"host_code", "in its own code"},
    {"run_queue", "without a processor"},
    {"gpu", "by work on its GPU"},
};

}  // namespace

std::string CauseWords(const v1::LateCause& cause) {
  const Words* found =
      std::find_if(std::begin(kWords), std::end(kWords),
                   [&](const Words& words) { return cause.cause() == words.cause; });
  std::string text = found == std::end(kWords)
                         ? absl::StrCat("waiting (", Printable(cause.cause()), ")")
                         : found->words;
  if (cause.has_site()) absl::StrAppend(&text, " at ", FormatSite(cause.site()));
  return text;
}

std::string LateWords(const v1::Ranks& ranks, const v1::RankRow& row,
                      const v1::LateCause& cause) {
  const uint64_t each = cause.total_ns() / std::max<uint64_t>(cause.steps(), 1);
  const char* const of = ranks.counts_collectives() ? "collective" : "step";
  return absl::StrCat("rank ", row.rank(), " was late in ", FormatCount(cause.steps()),
                      " of ", Counted(ranks.steps(), of), ", by ", FormatDuration(each),
                      " on average, ", CauseWords(cause));
}

std::string OthersWords(const v1::Ranks& ranks) {
  if (ranks.world_size() <= 2) return "the other rank";
  return absl::StrCat("the other ", FormatCount(ranks.world_size() - 1), " ranks");
}

std::string LateSentences(const v1::Ranks& ranks, const v1::RankRow& row,
                          const v1::LateCause& cause) {
  std::string late = LateWords(ranks, row, cause);
  late[0] = 'R';
  return absl::StrCat(late, ". That cost ", OthersWords(ranks), " ",
                      FormatDuration(cause.cost_ns()), ".");
}

}  // namespace lull
