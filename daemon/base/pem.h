// Files of certificates and keys.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace lull {

// NOT_FOUND where it cannot be read, or has nothing of PEM.
absl::StatusOr<std::string> ReadPem(const std::string& path);

// The certificate authorities that this host trusts, where distributions keep them.
// NOT_FOUND where there are none.
absl::StatusOr<std::string> ReadSystemRoots();

}  // namespace lull
