// Numbers that would be mixed up, as types of their own: CorrelationId{7}.
#pragma once

#include <cstdint>

namespace lull {

// CUPTI's, of a call and of the operation that it submitted. 0: none.
enum class CorrelationId : uint32_t {};
// The kernel's, of a thread. 0: not known.
enum class ThreadId : uint32_t {};

}  // namespace lull
