#include "daemon/relay/samples/scheduling.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "daemon/procfs/stat.h"

namespace lull::relay {

bool ParseSchedstat(absl::string_view text, Scheduling* scheduling) {
  std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  // Whoever is there has run: "0 0 0" is a kernel that does not count (without
  // CONFIG_SCHEDSTATS, and delayacct off), and a count that stays says nothing then.
  return fields.size() == 3 && absl::SimpleAtoi(fields[0], &scheduling->ran_ns) &&
         absl::SimpleAtoi(fields[1], &scheduling->delay_ns) &&
         absl::SimpleAtoi(fields[2], &scheduling->slices) && scheduling->slices > 0;
}

bool ParseProcessor(absl::string_view stat, Scheduling* scheduling) {
  return absl::SimpleAtoi(StatField(stat, kStatProcessor), &scheduling->processor);
}

bool ParseSwitches(absl::string_view status, Scheduling* scheduling) {
  return absl::SimpleAtoi(StatusField(status, "nonvoluntary_ctxt_switches"),
                          &scheduling->involuntary);
}

}  // namespace lull::relay
