#include "daemon/aggregate/malloc_retries.h"

#include "daemon/aggregate/event_views.h"

namespace lull::aggregate {

std::optional<MallocRetries::Retry> MallocRetries::Add(const Series& series,
                                                       const Event& event) {
  if (!IsMemory(series.type)) return std::nullopt;
  const bool frees = IsFree(series);
  const bool fails = IsFailed(series);
  if (series.type == EventType::kTorchMemory) {
    if (!frees) failed_.erase(event.tid);
    return std::nullopt;
  }
  if (AllocatorOf(series) != Allocator::kCuda) return std::nullopt;
  const uint64_t bytes = MemoryView{event}.bytes();
  auto open = failed_.find(event.tid);
  if (frees) {
    if (open != failed_.end() && !fails && MemoryView{event}.address() != 0)
      ++open->second.frees;
    return std::nullopt;
  }
  std::optional<Retry> retry;
  if (open != failed_.end()) {
    const Failed& first = open->second;
    if (first.bytes == bytes && first.frees > 0) {
      retry = Retry{first.series, first.start_ns,
                    event.start_ns + event.duration_ns - first.start_ns, first.bytes,
                    !fails};
    }
    failed_.erase(open);
  }
  if (fails && bytes != 0 && failed_.size() < kMaxThreads) {
    failed_[event.tid] = {event.series, event.start_ns, bytes, 0};
  }
  return retry;
}

}  // namespace lull::aggregate
