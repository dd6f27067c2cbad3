// Whose an address space is, asked through a descriptor of /proc/PID/mem.
#pragma once

#include "daemon/base/unique_fd.h"

namespace lull {

// True if the process whose memory `memory` opens has ended, or has become another
// program. False where there is no descriptor.
bool IsOfNobody(const UniqueFd& memory);

}  // namespace lull
