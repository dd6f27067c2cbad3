#include "cli/commands/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "cli/base/output.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

absl::Status WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot write the page");
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Of a link the file that it leads to: that one is replaced, and not the link.
std::string Resolved(const std::string& path) {
  char whole[PATH_MAX];
  return realpath(path.c_str(), whole) != nullptr ? whole : path;
}

// A new file beside `path`, in whose place it is then put.
absl::Status Replace(const std::string& path, mode_t mode, absl::string_view page) {
  const std::string beside = absl::StrCat(path, ".", getpid(), ".tmp");
  UniqueFd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  absl::Status status = WriteAll(file.get(), page);
  if (status.ok() && mode != 0 && fchmod(file.get(), mode) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  }
  if (status.ok() && close(file.release()) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  }
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  }
  if (!status.ok()) unlink(beside.c_str());
  return status;
}

}  // namespace

absl::Status WritePage(const std::string& path, absl::string_view page) {
  if (path == "-") {
    Print(page);
    return absl::OkStatus();
  }
  struct stat there = {};
  const bool exists = stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a folder; name a file in it"));
  }
  if (!exists || S_ISREG(there.st_mode)) {
    return Replace(Resolved(path), exists ? there.st_mode & 07777 : 0, page);
  }
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  return WriteAll(file.get(), page);
}

}  // namespace lull
