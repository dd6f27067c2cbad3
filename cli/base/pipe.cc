#include "cli/base/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/base/status.h"

namespace lull {

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  UniqueFd low_read(ends[0]);
  UniqueFd low_write(ends[1]);
  Pipe pipe{UniqueFd(fcntl(ends[0], F_DUPFD_CLOEXEC, 3)),
            UniqueFd(fcntl(ends[1], F_DUPFD_CLOEXEC, 3))};
  if (!pipe.read || !pipe.write) return ErrnoStatus(errno, "cannot make a pipe");
  return pipe;
}

void FillStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    // The lowest free descriptor is the one that is missing.
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
  }
}

}  // namespace lull
