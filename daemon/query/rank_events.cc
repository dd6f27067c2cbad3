#include "daemon/query/rank_events.h"

#include "absl/strings/match.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/wait_kind.h"

namespace lull::query {

using aggregate::EventType;
using aggregate::Series;
using aggregate::WaitKind;

bool IsCollective(const Series& series) {
  return series.type == EventType::kHostWait &&
         aggregate::WaitKindOf(series) == WaitKind::kComm;
}

bool MayBeACollective(const Series& series, Names& names) {
  return series.type == EventType::kHostWait && series.native_stack == 0 &&
         aggregate::WaitKindOf(series) == WaitKind::kLock &&
         absl::StartsWith(names.Api(series.api), "pthread_cond_");
}

const char* CauseOf(const Series& series, uint64_t duration_ns) {
  switch (series.type) {
    case EventType::kHostWait:
    case EventType::kScope:
      return aggregate::IsWait(series) && !IsCollective(series)
                 ? aggregate::WaitKindName(aggregate::WaitKindOf(series))
                 : "";
    case EventType::kGcPause:
      return "gc";
    case EventType::kSync:
      return "sync";
    case EventType::kTorchMemory:
      return duration_ns > aggregate::kSlowAllocationNs ? "allocator" : "";
    case EventType::kDeviceMemory:
      return "allocator";
    default:
      return "";
  }
}

}  // namespace lull::query
