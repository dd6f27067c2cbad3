// Runs of one side of a comparison as a file beside the code, so that a gate needs no
// collector that knows the earlier ones.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/compare/run.h"

namespace lull {

inline constexpr size_t kMostBaselineBytes = 64 << 20;

// Of runs that have been asked about: what rules about a baseline use of them. No
// stack, no kernel, and no command.
std::string BaselineText(const compare::Runs& runs);

// FAILED_PRECONDITION for what BaselineText() did not write, or a newer lull did.
absl::StatusOr<compare::Runs> ReadBaseline(absl::string_view text);

}  // namespace lull
