// Which files an import is of, and the job that they make.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lull::imports {

// Files in a fixed order: `paths` may name folders, of which the traces are taken.
// NOT_FOUND with the path where there is none.
absl::StatusOr<std::vector<std::string>> FindTraces(
    const std::vector<std::string>& paths);

// 32 hex digits, of the contents of the files in whatever order, and of the version of
// what is made of them. INVALID_ARGUMENT where two are the same.
absl::StatusOr<std::string> JobIdOf(const std::vector<std::string>& files);

}  // namespace lull::imports
