#include "preload/entry/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "preload/ring/backing.h"
#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace lull {
namespace {

bool file_size_allowed() {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= abi::kSegmentSize);
}

// Never 0, 1 or 2, even in a process that closed those: another thread may be
// about to print.
int open_memfd() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = syscall(SYS_memfd_create, "lull", kFlags | MFD_NOEXEC_SEAL);
  if (fd < 0) fd = syscall(SYS_memfd_create, "lull", kFlags);  // before Linux 6.3
  if (fd < 0 || fd > 2) return static_cast<int>(fd);
  long high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
  raw_close(static_cast<int>(fd));
  return static_cast<int>(high);
}

bool size_and_seal(int fd) {
  return syscall(SYS_ftruncate, fd, abi::kSegmentSize) == 0 &&
         syscall(SYS_fcntl, fd, F_ADD_SEALS,
                 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

uint64_t realtime_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// The first two pages; rings, stacks and their index ask for theirs one by one.
bool fill(char* base) {
  if (!has_memory(base, 2 * abi::kPage)) return false;
  abi::SegmentView view(base);
  abi::SegmentHeader& header = view.header();
  header.magic = abi::kSegmentMagic;
  header.version = abi::kVersion;
  header.pid = static_cast<uint32_t>(raw_getpid());
  header.size = abi::kSegmentSize;
  header.created_ns = monotonic_ns();
  header.created_realtime_ns = realtime_ns();
  abi::ControlBlock& control = view.control();
  control.wait_threshold_ns.store(abi::kDefaultWaitThresholdNs,
                                  std::memory_order_relaxed);
  control.late_launch_ns.store(abi::kDefaultLateLaunchNs, std::memory_order_relaxed);
  control.armed.store(1, std::memory_order_relaxed);
  backing_begin();
  return true;
}

constexpr NewSegment kNone = {nullptr, -1};

// Memory of a segment's size that is there once it is touched, whatever the system
// promises of other memory; at `in_place_of` if that is not null. It counts towards
// neither the data limit of the process nor what strict overcommit has given away.
NewSegment map_new(char* in_place_of) {
  if (!file_size_allowed()) return kNone;
  int fd = open_memfd();
  if (fd < 0) return kNone;
  void* base = MAP_FAILED;
  if (size_and_seal(fd)) {
    base = mmap(in_place_of, abi::kSegmentSize, PROT_READ | PROT_WRITE,
                MAP_SHARED | (in_place_of != nullptr ? MAP_FIXED : 0), fd, 0);
  }
  if (base == MAP_FAILED) {
    raw_close(fd);
    return kNone;
  }
  madvise(base, abi::kSegmentSize, MADV_DONTDUMP);  // core dumps stay the target's own
  return {static_cast<char*>(base), fd, file_of(fd)};
}

}  // namespace

NewSegment create_segment(char* in_place_of) {
  NewSegment segment = map_new(in_place_of);
  if (segment.base == nullptr || fill(segment.base)) return segment;
  discard_segment(segment, in_place_of);
  return kNone;
}

void abandon_segment(char* base) {
  NewSegment empty = map_new(base);
  close_if_still(empty.fd, empty.file);
}

void discard_segment(const NewSegment& segment, char* in_place_of) {
  if (in_place_of == nullptr) {
    munmap(segment.base, abi::kSegmentSize);
  } else {
    abandon_segment(in_place_of);
  }
  close_if_still(segment.fd, segment.file);
}

}  // namespace lull
