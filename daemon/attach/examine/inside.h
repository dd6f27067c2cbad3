// Reaching into the files of another process without being led astray there.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/unique_fd.h"

namespace lull::attach {

// While it lives, this thread makes and opens files as another user would: the kernel
// checks fsuid and fsgid, and takes the rights away that root has over files. Nothing
// changes for our own user.
class ActAs {
 public:
  ActAs(uint32_t user, uint32_t group);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

  bool ok() const { return ok_; }

 private:
  uint32_t old_user_;
  uint32_t old_group_;
  bool ok_;
};

// Opens the folder "a/b/c" below the folder `root` (both O_PATH), one component after
// the other, none of which may be a symbolic link.
absl::StatusOr<UniqueFd> OpenInside(int root, absl::string_view path);

// Whether files can be made and executed there by the user that we act as.
absl::Status CheckPlace(int folder);

// Copies a file of ours to the new file `name` in `folder`, with mode 0700, and checks
// that it can be mapped as code. Call it acting as the target's user; `source` is open
// already. Removes what it made when it fails.
absl::Status CopyInside(int source, int folder, const char* name);

}  // namespace lull::attach
