// May lull trace a process? The kernel's rules, in its order (ptrace(2), "Ptrace access
// mode checking"), so that the answer names the rule that says no. Pure.
#pragma once

#include <vector>

#include "daemon/attach/examine/verdict.h"

namespace lull::attach {

// Adds at most one obstacle: the first that stands in the way.
void JudgePermission(const Process& process, const Viewpoint& view,
                     const Circumstances& circumstances,
                     std::vector<Obstacle>* obstacles);

}  // namespace lull::attach
