#include "cli/render/advice.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/render/format.h"

namespace lull {
namespace {

class Findings {
 public:
  explicit Findings(const v1::ReportReply& reply)
      : reply_(reply), working_ns_(static_cast<double>(SharesOf(reply).working_ns)) {}

  std::vector<Advice> Collect() {
    DataWaits();
    OldCollections();
    DeviceMemoryInLoop();
    Syncs();
    std::stable_sort(
        found_.begin(), found_.end(),
        [](const Advice& a, const Advice& b) { return a.time_ns > b.time_ns; });
    return std::move(found_);
  }

 private:
  bool Exceeds(uint64_t ns, double percent) const {
    return working_ns_ > 0 && Percent(static_cast<double>(ns), working_ns_) > percent;
  }
  std::string Share(uint64_t ns) const {
    return FormatShare(static_cast<double>(ns), working_ns_);
  }

  void DataWaits() {
    uint64_t total = SharesOf(reply_).data_wait_ns;
    if (!Exceeds(total, kDataWaitPercent)) return;
    std::string at;
    for (const v1::HostWait& wait : reply_.waits().host_waits()) {
      if (wait.kind() != "data") continue;
      at = absl::StrCat(", most at ", FormatSite(wait.site()));
      break;
    }
    found_.push_back(
        {absl::StrCat("waiting for data takes ", Share(total), " of the time", at),
         "give the DataLoader more workers (num_workers), or make loading a sample "
         "cheaper",
         total});
  }

  void OldCollections() {
    uint64_t total = 0;
    uint64_t count = 0;
    for (const v1::GcPause& pause : reply_.gc().gc_pauses()) {
      if (pause.generation() != 2) continue;
      total += pause.total_ns();
      count += pause.count();
    }
    if (count < kOftenCollected || !Exceeds(total, kOldGcPercent)) return;
    found_.push_back(
        {absl::StrCat(FormatCount(count), " full garbage collections take ",
                      Share(total), " of the time"),
         "call gc.freeze() after set-up, or gc.disable() and gc.collect() between "
         "steps",
         total});
  }

  void DeviceMemoryInLoop() {
    uint64_t total = 0;
    uint64_t calls = 0;
    const v1::AllocationSite* worst = nullptr;
    for (const v1::AllocationSite& site : reply_.allocations().allocation_sites()) {
      if (site.allocator() != "cuda" && site.allocator() != "pinned") continue;
      if (site.calls() + site.frees() < kLoopCalls) continue;
      total += site.blocked_ns();
      calls += site.calls();
      if (worst == nullptr || site.blocked_ns() > worst->blocked_ns()) worst = &site;
    }
    if (!Exceeds(total, kDeviceMemoryPercent)) return;
    found_.push_back(
        {absl::StrCat("allocating and freeing device or pinned memory in a loop takes ",
                      Share(total), " of the time (", FormatCount(calls),
                      " allocations), most at ", FormatSite(worst->site())),
         "allocate once before the loop, or use a caching allocator or cudaMallocAsync",
         total});
  }

  // A copy that is counted as a sync point blocked the host: an asynchronous one
  // only does when its host side is pageable.
  void Syncs() {
    uint64_t pageable = 0;
    const v1::SyncPoint* pageable_worst = nullptr;
    for (const v1::SyncPoint& point : reply_.syncs().sync_points()) {
      if (IsAsyncCopy(point) && !IsReadBack(point)) {
        pageable += point.blocked_ns();
        if (pageable_worst == nullptr) pageable_worst = &point;
      } else if (point.calls() >= kLoopCalls &&
                 Exceeds(point.blocked_ns(), kSyncPercent)) {
        AddSync(point);
      }
    }
    if (pageable_worst == nullptr || !Exceeds(pageable, kPageableCopyPercent)) return;
    found_.push_back(
        {absl::StrCat("copies from or to pageable memory block the host for ",
                      Share(pageable), " of the time, most at ",
                      FormatSite(pageable_worst->site())),
         "use pinned memory: DataLoader(pin_memory=True) or tensor.pin_memory(), and "
         "non_blocking=True",
         pageable});
  }

  void AddSync(const v1::SyncPoint& point) {
    bool copy = absl::StrContains(point.api(), "emcpy") && !IsReadBack(point);
    found_.push_back(
        {absl::StrCat(point.api(), " blocks the host for ", Share(point.blocked_ns()),
                      " of the time, at ", FormatSite(point.site())),
         copy ? "copy asynchronously from pinned memory, or less often"
              : "keep .item(), .cpu(), prints of tensors and synchronize() out of the "
                "loop, or do them every few steps",
         point.blocked_ns()});
  }

  static bool IsAsyncCopy(const v1::SyncPoint& point) {
    return absl::StrContains(point.api(), "emcpy") &&
           absl::StrContains(point.api(), "Async");
  }

  // A copy of a few bytes takes microseconds by itself: the time is that of the work
  // queued before it, and pinned memory would win nothing.
  static bool IsReadBack(const v1::SyncPoint& point) {
    return absl::StrContains(point.api(), "emcpy") &&
           point.bytes() <= kReadBackBytes * point.calls();
  }

  const v1::ReportReply& reply_;
  double working_ns_;
  std::vector<Advice> found_;
};

}  // namespace

Shares SharesOf(const v1::ReportReply& reply) {
  auto works = [](const v1::ProcessRow& row) { return row.gpu() || row.torch(); };
  bool any = std::any_of(reply.processes().begin(), reply.processes().end(), works);
  Shares shares;
  for (const v1::ProcessRow& row : reply.processes()) {
    if (any && !works(row)) continue;
    shares.working_ns += row.duration_ns();
    shares.blocked_ns += row.blocked_ns();
    shares.data_wait_ns += row.data_wait_ns();
    shares.gc_ns += row.gc_ns();
    ++shares.working_processes;
  }
  return shares;
}

std::vector<Advice> WhatToChangeFirst(const v1::ReportReply& reply) {
  return Findings(reply).Collect();
}

}  // namespace lull
