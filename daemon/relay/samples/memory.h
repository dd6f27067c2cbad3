// The memory of another process. It is only read, and the process is not stopped.
//
// process_vm_readv asks for the right to ptrace with each call. A process that handed
// over a descriptor of its own /proc/self/mem is read through that where the kernel
// refuses: such a descriptor is checked when it is opened, and the process may open its
// own. It reads nothing once the process has exec'ed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "daemon/base/unique_fd.h"
#include "events.pb.h"

namespace lull::relay {

struct Piece {
  uint64_t address = 0;
  uint32_t size = 0;

  bool operator==(const Piece&) const = default;
};

// One thread at a time. Tests put other memory in its place.
class TargetMemory {
 public:
  // `memory`: that descriptor; may be null, or hold none.
  TargetMemory(pid_t pid, std::shared_ptr<const UniqueFd> memory)
      : pid_(pid), memory_(std::move(memory)) {}
  virtual ~TargetMemory() = default;
  TargetMemory(const TargetMemory&) = delete;
  TargetMemory& operator=(const TargetMemory&) = delete;

  // Copies the pieces one behind the other to `out`, in their order and, by
  // process_vm_readv, in one call. Returns how many of them were copied whole: all, or
  // the place of the first that could not be read. At most kMostPieces.
  static constexpr size_t kMostPieces = 1024;
  virtual size_t Read(std::span<const Piece> pieces, char* out);
  bool Read(uint64_t address, void* out, uint32_t size) {
    Piece piece{address, size};
    return Read({&piece, 1}, static_cast<char*>(out)) == 1;
  }

  v1::HostSampleAccess access() const { return access_; }

 private:
  size_t ReadByDescriptor(std::span<const Piece> pieces, char* out);

  const pid_t pid_;
  const std::shared_ptr<const UniqueFd> memory_;
  v1::HostSampleAccess access_ = v1::HOST_SAMPLE_ACCESS_UNTRIED;
};

}  // namespace lull::relay
