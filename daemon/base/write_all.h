// Writing to a descriptor until all of it is written.
#pragma once

#include <errno.h>
#include <unistd.h>

#include "absl/strings/string_view.h"
#include "daemon/base/status.h"

namespace lull {

inline absl::Status WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = TEMP_FAILURE_RETRY(write(fd, bytes.data(), bytes.size()));
    if (written < 0) return ErrnoStatus(errno, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace lull
