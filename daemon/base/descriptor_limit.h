// How many descriptors a process may have.
#pragma once

#include <sys/resource.h>

namespace lull {

// As many as it may give itself: a keeper and a worker hold two for each target. Never
// call it in a process that becomes the job.
inline void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace lull
