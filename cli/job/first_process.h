// `lull run` as the first process of a container (docker run IMAGE lull run -- ...).
//
// The kernel makes the first process the parent of every process whose own parent has
// ended, and keeps their entries until it asks for them. In place of what a container's
// entry point is for that (tini, docker --init), lull stays behind as it, in a process
// that does nothing else: it passes signals on to the lull that runs the job, which is
// its child, ends those entries, and ends as that lull does. With it all other
// processes of the container end.
#pragma once

namespace lull {

// Returns in the child, or at once where this is not the first process of its PID
// namespace, or no process can be made. Call it while there is one thread.
void LeaveFirstProcessBehind();

}  // namespace lull
