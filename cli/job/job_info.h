// What a job is called and where and when it began.
#pragma once

#include <string>
#include <vector>

#include "ingest.pb.h"

namespace lull {

// A JobInfo with a fresh random id, this host and user, and now as its start.
v1::JobInfo MakeJobInfo(const std::string& name, const std::string& command,
                        const v1::JobSettings& settings);

// argv as one line that a shell would read the same way.
std::string CommandText(const std::vector<std::string>& argv);

// The command line of the process in `session` (0: in any) that preloaded liblull.so
// last: a relay was just started for it. "" when there is none that we may look at.
std::string CommandOfPreloaded(int session);

}  // namespace lull
