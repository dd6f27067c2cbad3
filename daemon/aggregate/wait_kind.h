// What a host wait was for, from the call that waited and who made it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/aggregate/series.h"
#include "daemon/aggregate/site.h"

namespace lull::aggregate {

// Stored as the variant of a wait's series: append only.
enum class WaitKind : uint8_t {
  kOther = 0,
  kData = 1,     // below torch/utils/data/dataloader.py, whatever the call,
                 // its import apart
  kGil = 2,      // the interpreter's own timed condition wait
  kLock = 3,     // semaphores and conditions
  kIo = 4,       // poll, select, epoll, read, recv
  kSleep = 5,    // nanosleep, clock_nanosleep
  kProcess = 6,  // wait for a child
  // Part of a DataLoader's __next__, which is reported as a whole (a scope): no report
  // lists this wait by itself.
  kWithinData = 7,
  kComm =
      8,  // a condition, below a function of c10d or gloo: other ranks are waited for
};

const char* WaitKindName(WaitKind kind);

// What reports count as a wait: also the whole of a DataLoader's __next__, instead of
// the waits within it.
inline bool IsWait(const Series& series) {
  if (series.type != EventType::kHostWait) return IsLoading(series);
  return static_cast<WaitKind>(series.variant) != WaitKind::kWithinData;
}
inline WaitKind WaitKindOf(const Series& wait) {
  return IsLoading(wait) ? WaitKind::kData : static_cast<WaitKind>(wait.variant);
}
inline bool IsDataWait(const Series& series) {
  return IsWait(series) && WaitKindOf(series) == WaitKind::kData;
}

// `from_python`: the interpreter itself made the call. `python`, `native`: innermost
// first.
WaitKind ClassifyWait(std::string_view api, bool from_python,
                      const std::vector<const Frame*>& python,
                      const std::vector<const Frame*>& native);

}  // namespace lull::aggregate
