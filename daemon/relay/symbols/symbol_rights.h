// What a process that reads hostile files must not be able to do.
#pragma once

#include <sys/types.h>

namespace lull::relay {

// Before the first hostile byte. From now on the process, one of root, has the rights
// of `uid` and `gid` (a target of root's: of nobody, or of root without capabilities
// where there is no nobody); any process has no capabilities, gains none by exec,
// cannot be looked into by others of its uid, writes no files and leaves no core, has
// bounds for memory, ends with its parent, and is the first to go when memory runs out.
// False when it would keep root's rights: go no further.
bool GiveUpRights(uid_t uid, gid_t gid);

// Neither threads nor processes are made from now on.
void ForkNoMore();

// Lets the process have `seconds` of processor time from now on; it is ended when it
// takes more without asking again.
void AllowCpu(unsigned seconds);

}  // namespace lull::relay
