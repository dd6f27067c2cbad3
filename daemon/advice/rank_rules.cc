#include "absl/strings/str_cat.h"
#include "daemon/advice/rules.h"
#include "daemon/advice/thresholds.h"
#include "daemon/words/format.h"
#include "daemon/words/late_words.h"

namespace lull {
namespace {

std::string HowToAvoid(const v1::LateCause& cause) {
  if (cause.cause() == "data") {
    return "give its DataLoader more workers, or give all ranks samples of equal cost";
  }
  if (cause.cause() == "gc") {
    return "call gc.freeze() after set-up, or gc.disable() and gc.collect() on all "
           "ranks in the same step";
  }
  if (cause.cause() == "run_queue") {
    return "leave it a processor: fewer threads and workers on this host, or pin them";
  }
  if (cause.cause() == "gpu") {
    return "give all ranks samples of equal size, or look whether this GPU is slower "
           "than "
           "the others: clock, temperature, somebody else's work";
  }
  return "take it out of the step, or do it beside the training";
}

}  // namespace

// What other ranks waited on their GPUs is traced time, else it is the host's.
void LateRanks(const Evidence& evidence, Findings& found) {
  const v1::Ranks& ranks = evidence.reply().ranks();
  for (const v1::RankRow& row : ranks.ranks()) {
    for (const v1::LateCause& cause : row.culprits()) {
      if (!(ranks.on_device()
                ? evidence.ExceedsTraced(cause.cost_ns(), kLateRankPercent)
                : evidence.ExceedsWork(cause.cost_ns(), kLateRankPercent))) {
        continue;
      }
      v1::Finding& finding = AddFinding(
          found, "late_rank",
          absl::StrCat(LateWords(ranks, row, cause), "; that cost ", OthersWords(ranks),
                       " ", FormatDuration(cause.cost_ns())),
          HowToAvoid(cause), cause.cost_ns(), ranks.on_device());
      if (cause.has_site()) *finding.mutable_site() = cause.site();
    }
  }
}

}  // namespace lull
