#include "absl/strings/str_cat.h"
#include "daemon/advice/rules.h"
#include "daemon/advice/sync_kind.h"
#include "daemon/advice/thresholds.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

void AddSync(const Evidence& evidence, const v1::SyncPoint& point, Findings& found) {
  *AddFinding(found, "sync",
              absl::StrCat(point.api(), " blocks the host for ",
                           evidence.OfWork(point.blocked_ns()), " of the time, at ",
                           FormatSite(point.site())),
              HowToAvoid(KindOf(point)), point.blocked_ns(), false)
       .mutable_site() = point.site();
}

}  // namespace

void HostDataWaits(const Evidence& evidence, Findings& found) {
  uint64_t total = evidence.shares().data_wait_ns();
  if (!evidence.ExceedsWork(total, kDataWaitPercent)) return;
  std::string at;
  v1::Site site;
  for (const v1::HostWait& wait : evidence.reply().waits().host_waits()) {
    if (wait.kind() != "data") continue;
    site = wait.site();
    at = absl::StrCat(", most at ", FormatSite(site));
    break;
  }
  *AddFinding(
       found, "data_wait",
       absl::StrCat("waiting for data takes ", evidence.OfWork(total), " of the time",
                    at),
       "give the DataLoader more workers (num_workers), or make loading a sample "
       "cheaper",
       total, false)
       .mutable_site() = site;
}

void HostOldCollections(const Evidence& evidence, Findings& found) {
  // Those of imports and set-up come once, and before anything could be frozen.
  uint64_t total = evidence.reply().gc().full_in_steps_ns();
  uint64_t count = evidence.reply().gc().full_in_steps_count();
  if (count < kOftenCollected || !evidence.ExceedsWork(total, kOldGcPercent)) return;
  AddFinding(
      found, "gc",
      absl::StrCat(FormatCount(count), " full garbage collections in the steps take ",
                   evidence.OfWork(total), " of the time"),
      "call gc.freeze() after set-up, or gc.disable() and gc.collect() between "
      "steps",
      total, false);
}

void HostDeviceMemory(const Evidence& evidence, Findings& found) {
  uint64_t total = 0;
  uint64_t calls = 0;
  const v1::AllocationSite* worst = nullptr;
  for (const v1::AllocationSite& site :
       evidence.reply().allocations().allocation_sites()) {
    if (site.allocator() != "cuda" && site.allocator() != "pinned") continue;
    if (site.calls() + site.frees() < kLoopCalls) continue;
    total += site.blocked_ns();
    calls += site.calls();
    if (worst == nullptr || site.blocked_ns() > worst->blocked_ns()) worst = &site;
  }
  if (!evidence.ExceedsWork(total, kDeviceMemoryPercent)) return;
  *AddFinding(
       found, "allocator",
       absl::StrCat("allocating and freeing device or pinned memory in a loop takes ",
                    evidence.OfWork(total), " of the time (", FormatCount(calls),
                    " allocations), most at ", FormatSite(worst->site())),
       "allocate once before the loop, or use a caching allocator or cudaMallocAsync",
       total, false)
       .mutable_site() = worst->site();
}

void HostSyncs(const Evidence& evidence, Findings& found) {
  uint64_t pageable = 0;
  const v1::SyncPoint* pageable_worst = nullptr;
  for (const v1::SyncPoint& point : evidence.reply().syncs().sync_points()) {
    if (IsAsyncCopy(point) && !IsReadBack(point)) {
      pageable += point.blocked_ns();
      if (pageable_worst == nullptr) pageable_worst = &point;
    } else if (point.calls() >= kLoopCalls &&
               evidence.ExceedsWork(point.blocked_ns(), kSyncPercent)) {
      AddSync(evidence, point, found);
    }
  }
  if (pageable_worst == nullptr) return;
  if (!evidence.ExceedsWork(pageable, kPageableCopyPercent)) return;
  *AddFinding(found, "pageable_copy",
              absl::StrCat("copies from or to pageable memory block the host for ",
                           evidence.OfWork(pageable), " of the time, most at ",
                           FormatSite(pageable_worst->site())),
              HowToAvoid(SyncKind::kPageableCopy), pageable, false)
       .mutable_site() = pageable_worst->site();
}

}  // namespace lull
