// What a launcher calls the run that a process is a rank of.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/base/run_kinds.h"

namespace lull {

// `environment` as ReadRank() has it. "KIND:ID", the same for all ranks of a run on all
// of its hosts, and of another run another one as far as the launcher makes that sure;
// "": none is told. LULL_RUN_ID comes first ("given:"), then the innermost launcher.
// torchrun calls a run "none" where it was given no --rdzv-id: that is no id. The last
// is where ranks meet (kMasterRun).
std::string ReadRunId(absl::string_view environment);

// "given:ID", without what a message must not hold and no longer than it may; "" for
// "".
std::string GivenRunId(absl::string_view id);

}  // namespace lull
