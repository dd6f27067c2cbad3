// What the dynamic loader of this machine finds. lull itself is linked without one, and
// the libraries that a job loads belong to the job's libc, not to lull's.
#pragma once

#include <string>

namespace lull {

// Whether a small program loads `library`, a path or a name that the loader searches
// for.
bool LoaderFinds(const std::string& library);

}  // namespace lull
