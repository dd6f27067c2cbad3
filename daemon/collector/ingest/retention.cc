#include "daemon/collector/ingest/retention.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(5);

}  // namespace

absl::StatusOr<bool> Retention::Step(
    absl::Time now, absl::FunctionRef<bool(const std::string&)> in_use) {
  first_step_ = std::min(first_step_, now);
  if (least_bytes_ > 0) writer_.UseReserve();
  LULL_ASSIGN_OR_RETURN(bool more, writer_.DeleteSome());
  if (more) return true;
  if (now < next_look_ && !needs_room_) return false;
  LULL_ASSIGN_OR_RETURN(bool marked, MarkOne(now, in_use));
  if (!marked) next_look_ = now + kLookEvery;
  return marked;
}

void Retention::NeedRoom() {
  needs_room_ = true;
  if (least_bytes_ > 0) return;
  auto used = writer_.UsedBytes();
  least_bytes_ = used.ok() ? std::max<uint64_t>(*used / 2, 1) : UINT64_MAX;
  LogWarning("the database's disk is full; deleting old jobs");
}

void Retention::HasRoom() {
  if (least_bytes_ == 0) return;
  needs_room_ = false;
  least_bytes_ = 0;
  writer_.KeepReserve();
  LogWarning("the database's disk has room again");
}

bool Retention::IsOver(const storage::JobRow& job, absl::Time now) const {
  absl::Duration silent =
      now - absl::FromUnixNanos(static_cast<int64_t>(job.touched_ns));
  return job.ended ||
         (silent > limits_.abandoned_after && now - first_step_ >= limits_.settle);
}

absl::StatusOr<bool> Retention::MarkOne(
    absl::Time now, absl::FunctionRef<bool(const std::string&)> in_use) {
  std::vector<storage::JobRow> damaged;
  LULL_ASSIGN_OR_RETURN(auto jobs, writer_.catalogue().Jobs(0, &damaged));
  for (storage::JobRow& job : damaged) {  // to its place among the others, by age
    const uint64_t start_ns = job.info.start_realtime_ns();
    auto older =
        std::find_if(jobs.begin(), jobs.end(), [&](const storage::JobRow& other) {
          return other.info.start_realtime_ns() < start_ns;
        });
    jobs.insert(older, std::move(job));
  }
  LULL_ASSIGN_OR_RETURN(uint64_t used, writer_.UsedBytes());
  const bool full = std::exchange(needs_room_, false) && used > least_bytes_;
  // Those that nobody ended only where no other is left.
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const storage::JobRow& a, const storage::JobRow& b) {
                     return !a.ended && b.ended;
                   });
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {  // oldest first
    if (job->marks.pinned() || !IsOver(*job, now) || in_use(job->info.id())) continue;
    bool expired = now - absl::FromUnixNanos(static_cast<int64_t>(job->touched_ns)) >
                   limits_.max_age;
    if (!expired && used <= limits_.max_bytes && !full) continue;
    LogInfo(absl::StrCat("deleting job ", job->info.id(),
                         expired ? ": age"
                         : full  ? ": the disk is full"
                                 : ": size"));
    absl::Status marked = writer_.catalogue().MarkForDeletion(job->id);
    if (!marked.ok()) needs_room_ = full;
    LULL_RETURN_IF_ERROR(marked);
    return true;
  }
  return false;
}

}  // namespace lull::collector
