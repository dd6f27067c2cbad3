#include "daemon/collector/retention.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(5);

}  // namespace

absl::StatusOr<bool> Retention::Step(
    absl::Time now, const std::function<bool(const std::string&)>& in_use) {
  LULL_ASSIGN_OR_RETURN(bool more, writer_.DeleteSome());
  if (more) return true;
  if (now < next_look_) return false;
  LULL_ASSIGN_OR_RETURN(bool marked, MarkOne(now, in_use));
  if (!marked) next_look_ = now + kLookEvery;
  return marked;
}

absl::StatusOr<bool> Retention::MarkOne(
    absl::Time now, const std::function<bool(const std::string&)>& in_use) {
  LULL_ASSIGN_OR_RETURN(auto jobs, writer_.reader().Jobs(0));
  LULL_ASSIGN_OR_RETURN(uint64_t used, writer_.UsedBytes());
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {  // oldest first
    absl::Duration silent =
        now - absl::FromUnixNanos(static_cast<int64_t>(job->touched_realtime_ns));
    bool over = job->ended || silent > limits_.abandoned_after;
    if (!over || in_use(job->uuid)) continue;
    bool expired = silent > limits_.max_age;
    if (!expired && used <= limits_.max_bytes) continue;
    LogInfo(absl::StrCat("deleting job ", job->uuid, expired ? ": age" : ": size"));
    LULL_RETURN_IF_ERROR(writer_.MarkForDeletion(job->id));
    return true;
  }
  return false;
}

}  // namespace lull::collector
