#include "daemon/aggregate/malloc_retries.h"

namespace lull::aggregate {

std::optional<MallocRetries::Retry> MallocRetries::Add(const Series& series,
                                                       const Event& event) {
  if (!IsMemory(series.type)) return std::nullopt;
  const bool frees = (series.variant & kVariantFree) != 0;
  const bool fails = (series.variant & kVariantFailed) != 0;
  if (series.type == EventType::kTorchMemory) {
    if (!frees) failed_.erase(event.tid);
    return std::nullopt;
  }
  auto allocator = static_cast<Allocator>(series.variant & kAllocatorMask);
  if (allocator != Allocator::kCuda) return std::nullopt;
  auto open = failed_.find(event.tid);
  if (frees) {
    if (open != failed_.end() && !fails && event.arg0 != 0) ++open->second.frees;
    return std::nullopt;
  }
  std::optional<Retry> retry;
  if (open != failed_.end()) {
    const Failed& first = open->second;
    if (first.bytes == event.arg1 && first.frees > 0) {
      retry = Retry{first.series, first.start_ns,
                    event.start_ns + event.duration_ns - first.start_ns, first.bytes,
                    !fails};
    }
    failed_.erase(open);
  }
  if (fails && event.arg1 != 0 && failed_.size() < kMaxThreads) {
    failed_[event.tid] = {event.series, event.start_ns, event.arg1, 0};
  }
  return retry;
}

}  // namespace lull::aggregate
