#include "daemon/attach/examine/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"
#include "daemon/base/write_all.h"

namespace lull::attach {
namespace {

constexpr uid_t kNobodyChanges = static_cast<uid_t>(-1);  // only tells what is set

absl::Status CopyBytes(int from, int to) {
  char buffer[65536];
  off_t at = 0;
  for (;;) {
    ssize_t got = TEMP_FAILURE_RETRY(pread(from, buffer, sizeof(buffer), at));
    if (got == 0) return absl::OkStatus();
    if (got < 0) return ErrnoStatus(errno, "cannot read the shim");
    LULL_RETURN_IF_ERROR(WriteAll(to, {buffer, static_cast<size_t>(got)}));
    at += got;
  }
}

absl::Status CheckMapsAsCode(int file) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  if (page == MAP_FAILED) return ErrnoStatus(errno, "cannot map code from there");
  munmap(page, 4096);
  return absl::OkStatus();
}

}  // namespace

ActAs::ActAs(uint32_t user, uint32_t group)
    : old_user_(static_cast<uint32_t>(setfsuid(kNobodyChanges))),
      old_group_(static_cast<uint32_t>(setfsgid(kNobodyChanges))) {
  setfsgid(group);
  setfsuid(user);
  ok_ = static_cast<uint32_t>(setfsuid(kNobodyChanges)) == user &&
        static_cast<uint32_t>(setfsgid(kNobodyChanges)) == group;
}

ActAs::~ActAs() {
  setfsuid(old_user_);
  setfsgid(old_group_);
}

absl::StatusOr<UniqueFd> OpenInside(int root, absl::string_view path) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd at;
  for (absl::string_view component : absl::StrSplit(path, '/')) {
    std::string name(component);
    at.reset(openat(at ? at.get() : root, name.c_str(), kFlags));
    if (!at) return ErrnoStatus(errno, "cannot open");
  }
  return at;
}

absl::Status CheckPlace(int folder) {
  struct statvfs system;
  if (fstatvfs(folder, &system) != 0) return ErrnoStatus(errno, "cannot look at it");
  if ((system.f_flag & ST_RDONLY) != 0) {
    return absl::FailedPreconditionError("mounted read-only");
  }
  if ((system.f_flag & ST_NOEXEC) != 0) {
    return absl::FailedPreconditionError("mounted noexec");
  }
  std::string path = absl::StrCat("/proc/self/fd/", folder);
  if (faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return ErrnoStatus(errno, "not writable");
  }
  return absl::OkStatus();
}

absl::Status CopyInside(int source, int folder, const char* name) {
  constexpr int kFlags = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd file(openat(folder, name, O_WRONLY | kFlags, 0700));
  if (!file) return ErrnoStatus(errno, "cannot make a file");
  absl::Status copied = CopyBytes(source, file.get());
  if (copied.ok()) {
    file.reset(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    copied = CheckMapsAsCode(file.get());
  }
  if (!copied.ok()) unlinkat(folder, name, 0);
  return copied;
}

}  // namespace lull::attach
