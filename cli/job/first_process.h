// `lull run` as the first process of a container (docker run IMAGE lull run -- ...).
//
// The kernel makes the first process the parent of every process whose own parent has
// ended, and keeps their entries until it asks for them. Containers have programs for
// that (tini, docker --init). Without one, lull itself stays behind as the first
// process and does nothing else: it passes signals on to its child, the lull that runs
// the job, removes those entries, and ends as its child does. All other processes of
// the container end with it.
#pragma once

namespace lull {

// Returns in the child, or at once where this is not the first process of its PID
// namespace, or no process can be made. Call it while there is one thread.
void LeaveFirstProcessBehind();

}  // namespace lull
