#include "daemon/inject/arch.h"

namespace lull::inject {

absl::StatusOr<const Arch*> ThisArch() {
  return absl::UnimplementedError(
      "attaching to a running process is not implemented on aarch64: start the job "
      "with `lull run`, or with `lull run --dormant` to watch it on demand");
}

}  // namespace lull::inject
