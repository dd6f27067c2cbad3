// Which events a call of the CUDA or HIP API becomes (docs/importing.md has the table).
#pragma once

#include <cstdint>

#include "daemon/import/api_names.h"
#include "daemon/import/record.h"
#include "preload/abi/event.h"

namespace lull::imports {

// What the hook of a live job would have recorded around the call: a launch, a copy, a
// sync, an allocation. kNone: nothing. Sets type, flags and arguments of `event`; the
// times and the thread are the caller's to set.
struct HookedCall {
  abi::EventType type = abi::EventType::kNone;
  uint8_t flags = 0;
  uint64_t arg1 = 0;
  uint32_t arg2 = 0;
};

// Pure. `call` is of kind kCall.
HookedCall HookOf(const Record& call, const CallFacts& facts, std::string_view name,
                  const Trace& trace);

}  // namespace lull::imports
