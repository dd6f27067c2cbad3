// Native stacks: the part of stacks.h that only prepare.cc needs.
#pragma once

namespace lull {

// Cold: says in the segment's header whether there will be native stacks, and sees to
// it that stacks_load_if_wanted() loads libunwind if nobody has tried yet.
void native_prepare(char* segment);

}  // namespace lull
