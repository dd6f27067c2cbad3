// Which events a call of the CUDA or HIP API becomes (docs/importing.md has the table).
#pragma once

#include "daemon/import/api_names.h"
#include "daemon/import/record.h"
#include "preload/abi/event.h"

namespace lull::imports {

// What the hook of a live job would have recorded around the call: a launch, a copy, a
// sync, an allocation. kNone: nothing. The times, the API and the stacks are the
// caller's to set. Pure. `call` is of kind kCall.
abi::Event HookOf(const Record& call, const CallFacts& facts, std::string_view name,
                  const Trace& trace);

}  // namespace lull::imports
