// Whose an address space is, by a descriptor of /proc/PID/mem.
#pragma once

#include "daemon/base/unique_fd.h"

namespace lull {

// The process whose memory `memory` is of has ended, or become another program's. False
// where there is no descriptor.
bool IsOfNobody(const UniqueFd& memory);

}  // namespace lull
