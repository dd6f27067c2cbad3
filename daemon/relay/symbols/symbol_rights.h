// What a process that reads hostile files must not be able to do.
#pragma once

#include <sys/types.h>

namespace lull::relay {

// Call this before the first hostile byte. From then on a process of root has the
// rights of `uid` and `gid` (for a target of root: of nobody, or of root without
// capabilities if there is no nobody). Any process has no capabilities and gains none
// by exec, cannot be looked into by others with its uid, writes no files, leaves no
// core, has a bound for its memory, ends with its parent, and is the first to go when
// memory runs out. False: it would keep root's rights; go no further.
bool GiveUpRights(uid_t uid, gid_t gid);

// From now on the process can start neither threads nor processes.
void ForkNoMore();

// Lets the process have `seconds` of processor time from now on; it is ended when it
// takes more without asking again.
void AllowCpu(unsigned seconds);

}  // namespace lull::relay
