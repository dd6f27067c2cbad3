#include "daemon/relay/samples/memory.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>

namespace lull::relay {

size_t TargetMemory::Read(std::span<const Piece> pieces, char* out) {
  if (pieces.empty() || pieces.size() > kMostPieces) return 0;
  if (access_ == v1::HOST_SAMPLE_ACCESS_DESCRIPTOR)
    return ReadByDescriptor(pieces, out);
  if (access_ == v1::HOST_SAMPLE_ACCESS_DENIED) return 0;
  std::array<iovec, kMostPieces> remote;
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    remote[i] = {reinterpret_cast<void*>(pieces[i].address), pieces[i].size};
    bytes += pieces[i].size;
  }
  iovec local{out, bytes};
  ssize_t got = process_vm_readv(pid_, &local, 1, remote.data(), pieces.size(), 0);
  if (got < 0 && (errno == EPERM || errno == ENOSYS) &&
      access_ == v1::HOST_SAMPLE_ACCESS_UNTRIED) {
    const bool given = memory_ != nullptr && *memory_;
    access_ = given ? v1::HOST_SAMPLE_ACCESS_DESCRIPTOR : v1::HOST_SAMPLE_ACCESS_DENIED;
    return given ? ReadByDescriptor(pieces, out) : 0;
  }
  if (got <= 0) return 0;
  access_ = v1::HOST_SAMPLE_ACCESS_READV;
  size_t left = static_cast<size_t>(got);
  size_t whole = 0;
  while (whole < pieces.size() && left >= pieces[whole].size) {
    left -= pieces[whole++].size;
  }
  return whole;
}

size_t TargetMemory::ReadByDescriptor(std::span<const Piece> pieces, char* out) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    ssize_t got = pread(memory_->get(), out, pieces[i].size,
                        static_cast<off_t>(pieces[i].address));
    if (got != static_cast<ssize_t>(pieces[i].size)) return i;
    out += got;
  }
  return pieces.size();
}

}  // namespace lull::relay
