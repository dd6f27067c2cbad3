#include "cli/client/places.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

constexpr char kChooseAnother[] =
    "; set LULL_RUNTIME_DIR to a directory of yours, and see `lull doctor`";

constexpr uint64_t kLeastSpoolBytes = 8u << 20;

bool HasRoomForASpool(const std::string& path) {
  struct statvfs info = {};
  return statvfs(path.c_str(), &info) != 0 ||
         uint64_t{info.f_bavail} * info.f_frsize >= kLeastSpoolBytes;
}

// "" for a user that the system does not know, as in a container.
std::string HomeDirectory() {
  const char* home = getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_dir : "";
}

}  // namespace

absl::StatusOr<std::string> PrepareRuntimeDirectory() {
  std::string path = RuntimeDirectory();
  absl::Status made = MakePrivateDirectory(path);
  if (!made.ok()) {
    return absl::Status(made.code(),
                        absl::StrCat("the runtime directory cannot be used: ",
                                     made.message(), kChooseAnother));
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the runtime directory ", path, " is not writable", kChooseAnother));
  }
  // The longest name that will be a socket's.
  std::string longest = RelaySocketPath(path, std::string(32, '0'));
  if (longest.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the path of the runtime directory is too long for a socket: ", path,
        kChooseAnother));
  }
  return path;
}

std::string DataDirectory() {
  const char* xdg = getenv("XDG_DATA_HOME");
  if (xdg != nullptr && xdg[0] == '/') return absl::StrCat(xdg, "/lull");
  std::string home = HomeDirectory();
  if (home.empty()) return absl::StrCat(RuntimeDirectory(), "/data");
  return absl::StrCat(home, "/.local/share/lull");
}

std::string DatabasePath() { return absl::StrCat(DataDirectory(), "/lull.db"); }

absl::Status PrepareDataDirectory() {
  std::string path = DataDirectory();
  absl::Status made = MakePrivateDirectory(path);
  if (made.ok() && access(path.c_str(), W_OK | X_OK) != 0) {
    made = ErrnoStatus(errno, absl::StrCat(path, " is not writable"));
  }
  if (made.ok()) return made;
  return absl::Status(
      made.code(), absl::StrCat("the data directory cannot be used: ", made.message(),
                                "; set XDG_DATA_HOME to a directory of yours"));
}

std::string CollectorSocketPath(absl::string_view runtime) {
  return absl::StrCat(runtime, "/collector.sock");
}

std::string RelaySocketPath(absl::string_view runtime, absl::string_view job_id) {
  return absl::StrCat(runtime, "/relay-", job_id.substr(0, 16), ".sock");
}

std::vector<std::string> SpoolPlaces(absl::string_view runtime, bool is_private) {
  const char* name = is_private ? "/spool" : "/spool-remote";
  return {absl::StrCat(DataDirectory(), name), absl::StrCat(runtime, name)};
}

std::string SpoolDirectory(absl::string_view runtime, bool is_private,
                           absl::string_view job_id) {
  std::vector<std::string> places = SpoolPlaces(runtime, is_private);
  bool in_data = PrepareDataDirectory().ok() && HasRoomForASpool(DataDirectory());
  return absl::StrCat(in_data ? places.front() : places.back(), "/", job_id);
}

}  // namespace lull
