#include "daemon/fleet/elsewhere.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/job_id.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/fleet/clickhouse_fleet.h"
#include "daemon/fleet/row_binary.h"

namespace lull::fleet {
namespace {

constexpr size_t kShownIdDigits = 12;
constexpr size_t kMostRows = 2;

// The first two.
absl::StatusOr<std::vector<Whereabouts>> JobsWhere(ClickHouse& server,
                                                   const std::string& condition,
                                                   const std::string& asker,
                                                   absl::Time deadline) {
  LULL_ASSIGN_OR_RETURN(
      const std::string answer,
      server.QueryUntil(deadline,
                        absl::StrCat("SELECT job, collector FROM lull_jobs WHERE ",
                                     condition, " ORDER BY collector = ", Quoted(asker),
                                     ", start_unix_ns DESC, job LIMIT ", kMostRows,
                                     " FORMAT RowBinary")));
  std::vector<Whereabouts> found;
  for (std::string_view rest = answer; !rest.empty();) {
    Whereabouts& one = found.emplace_back();
    if (found.size() > kMostRows || !Take(&rest, &one.job) ||
        !Take(&rest, &one.collector)) {
      return absl::DataLossError("its answer is none to what was asked");
    }
    // Others may write into the tables, too.
    if (!IsJobId(one.job)) {
      return absl::DataLossError("its table has jobs without an id");
    }
    one.collector = CleanText(one.collector);
  }
  if (found.size() == kMostRows && found.back().collector == asker) found.pop_back();
  return found;
}

}  // namespace

absl::StatusOr<std::optional<Whereabouts>> FindJob(ClickHouse& server,
                                                   const std::string& text,
                                                   const std::string& asker,
                                                   absl::Time deadline) {
  if (text.empty()) return std::nullopt;
  std::vector<Whereabouts> by_id, by_name;
  if (MayBeginJobId(text)) {
    LULL_ASSIGN_OR_RETURN(
        by_id,
        JobsWhere(server,
                  absl::StrCat("substring(job, 1, ", text.size(), ") = ", Quoted(text)),
                  asker, deadline));
  }
  if (!IsJobId(text)) {
    LULL_ASSIGN_OR_RETURN(
        by_name,
        JobsWhere(server, absl::StrCat("name = ", Quoted(text)), asker, deadline));
  }
  if (by_name.empty() && by_id.empty()) return std::nullopt;
  const Whereabouts& one = by_name.empty() ? by_id.front() : by_name.front();
  for (const Whereabouts& other : by_id) {
    if (other.job == one.job) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" may be job ", one.job.substr(0, kShownIdDigits),
                     " or job ", other.job.substr(0, kShownIdDigits),
                     " of other collectors; say more of the id"));
  }
  return one;
}

}  // namespace lull::fleet
