// Exit codes: 0 done, 1 it could not be done (the reason is on stderr), 2 a wrong
// command line. `run` returns the job's exit status instead, 125 when lull could
// not set itself up and the job was not started. `check` returns 1 when a rule failed
// and 3 when it cannot tell, whatever the reason.
#pragma once

namespace lull {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitCannotJudge = 3;
inline constexpr int kExitNotStarted = 125;
inline constexpr int kExitNotAttached = 125;

}  // namespace lull
