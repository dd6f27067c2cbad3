// Where sockets, tokens and spools of one user live.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lull {

// $LULL_RUNTIME_DIR, else $XDG_RUNTIME_DIR/lull, else /tmp/lull-UID. Only the
// path; nothing is made.
std::string RuntimeDirectory();

// Makes `path` and what is missing above it with mode 0700. PERMISSION_DENIED
// when the last component is not a directory of ours alone (somebody else made
// it, or others may write to it): in /tmp a name can be taken by anyone.
absl::Status MakePrivateDirectory(const std::string& path);

// Removes a directory and what is in it. A directory that is not there is fine.
absl::Status RemoveTree(const std::string& path);

}  // namespace lull
