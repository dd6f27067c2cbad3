// How the ids of runs begin, by who told them (daemon/procfs/run_id.h).
#pragma once

namespace lull {

// A person, who outranks launchers.
inline constexpr char kGivenRun[] = "given:";
// Nobody: it is where ranks meet, and comes again.
inline constexpr char kMasterRun[] = "master:";

}  // namespace lull
