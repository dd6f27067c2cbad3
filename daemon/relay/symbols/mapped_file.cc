#include "daemon/relay/symbols/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lull::relay {
namespace {

constexpr long kOverlayFs = 0x794c7630;  // its numbers may differ from those of maps

// A descriptor that names the file and does not open it: a device or a pipe notices
// nothing.
UniqueFd Locate(int root, absl::string_view path) {
  UniqueFd at(fcntl(root, F_DUPFD_CLOEXEC, 0));
  for (absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (!at || name == "." || name == "..") return UniqueFd();
    at.reset(
        openat(at.get(), std::string(name).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  }
  return at;
}

bool IsTheMapped(int fd, const Mapping& mapping) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) > kMaxMappedFile) {
    return false;
  }
  // Filesystems without a device of their own (btrfs) tell one number here, another one
  // there; 0 is a snapshot that did not keep it.
  bool same_device = mapping.device == 0 || info.st_dev == mapping.device ||
                     (major(info.st_dev) == 0 && major(mapping.device) == 0);
  if (same_device && info.st_ino == mapping.inode) return true;
  struct statfs filesystem;
  return fstatfs(fd, &filesystem) == 0 && filesystem.f_type == kOverlayFs;
}

}  // namespace

UniqueFd OpenMappedFileBelow(int root, const Mapping& mapping) {
  if (!absl::StartsWith(mapping.path, "/")) return UniqueFd();
  UniqueFd found = Locate(root, mapping.path);
  if (!found || !IsTheMapped(found.get(), mapping)) return UniqueFd();
  std::string itself = absl::StrCat("/proc/self/fd/", found.get());
  return UniqueFd(open(itself.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

UniqueFd OpenMappedFile(pid_t pid, const Mapping& mapping, int root) {
  auto open_folder = [](const std::string& path) {
    return UniqueFd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  };
  const UniqueFd theirs = open_folder(absl::StrCat("/proc/", pid, "/root"));
  const UniqueFd ours = open_folder("/");
  for (int folder : {theirs.get(), root, ours.get()}) {
    UniqueFd file = folder < 0 ? UniqueFd() : OpenMappedFileBelow(folder, mapping);
    if (file) return file;
  }
  return UniqueFd();
}

}  // namespace lull::relay
