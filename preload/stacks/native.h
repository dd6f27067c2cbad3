// Native stacks: the part of stacks.h that only prepare.cc needs.
#pragma once

namespace lull {

// Cold: loads libunwind on the first call, and says in the segment's header
// whether there will be native stacks.
void native_prepare(char* segment);

}  // namespace lull
