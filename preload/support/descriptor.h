// Descriptors of ours in a table that the program may change meanwhile: it closes all
// that it does not know, and the number is another file's by the next moment.
//
// Between the look and the use lies a system call, no more than that. Preserves errno.
#pragma once

#include <errno.h>
#include <sys/stat.h>

#include <cstdint>

#include "preload/support/raw_syscall.h"

namespace lull {

// Which file a descriptor is of. inode 0: not known, any will do.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
};

inline FileId file_of(int fd) {
  int errno_before = errno;
  struct stat info = {};
  bool known = syscall(SYS_fstat, fd, &info) == 0;
  errno = errno_before;
  return known ? FileId{info.st_dev, info.st_ino} : FileId{};
}

inline bool is_still(int fd, const FileId& file) {
  if (fd < 0 || file.inode == 0) return fd >= 0;
  FileId now = file_of(fd);
  return now.inode == file.inode && now.device == file.device;
}

inline void close_if_still(int fd, const FileId& file) {
  if (is_still(fd, file)) raw_close(fd);
}

}  // namespace lull
