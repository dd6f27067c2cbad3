// The originals of hooks/filter.cc, for the slots of a process that lull comes to late.
#pragma once

namespace lull {

void* original_prctl();
void* original_syscall();

}  // namespace lull
