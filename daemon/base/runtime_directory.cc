#include "daemon/base/runtime_directory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull {

std::string RuntimeDirectory() {
  const char* own = getenv("LULL_RUNTIME_DIR");
  if (own != nullptr && own[0] == '/') return own;
  const char* xdg = getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && xdg[0] == '/') return absl::StrCat(xdg, "/lull");
  return absl::StrCat("/tmp/lull-", getuid());
}

absl::Status MakePrivateDirectory(const std::string& path) {
  std::filesystem::path parent = std::filesystem::path(path).parent_path();
  struct stat info;
  if (!parent.empty() && stat(parent.c_str(), &info) != 0) {
    LULL_RETURN_IF_ERROR(MakePrivateDirectory(parent.string()));
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("cannot make the directory ", path));
  }
  if (lstat(path.c_str(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot look at ", path));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, " is not a directory that only this user can write to"));
  }
  return absl::OkStatus();
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot remove ", path));
  return absl::OkStatus();
}

}  // namespace lull
