// What a host wait was for, from the call that waited and who made it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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
};
const char* WaitKindName(WaitKind kind);

// `from_python`: the interpreter itself made the call. `python`: innermost first.
WaitKind ClassifyWait(std::string_view api, bool from_python,
                      const std::vector<const Frame*>& python);

}  // namespace lull::aggregate
