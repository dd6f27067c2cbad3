// What calls of the CUDA and HIP runtimes and drivers do, by their names.
#pragma once

#include <cstdint>
#include <string_view>

namespace lull::imports {

enum class CallKind : uint8_t {
  kOther,
  kLaunch,  // a kernel or a graph
  kCopy,
  kMemset,
  kSync,  // blocks until a stream, an event or the device is done
  kAllocate,
  kFree,
};

struct CallFacts {
  CallKind kind = CallKind::kOther;
  bool pinned = false;    // memory of the host
  bool blocking = false;  // a copy that is not asynchronous by its name
};

// Pure.
CallFacts FactsOfCall(std::string_view name);
// As in lull.v1.ApiName.family.
const char* FamilyOf(CallKind kind);

}  // namespace lull::imports
