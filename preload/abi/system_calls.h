// THE list of the system calls that lull makes in a process that it is brought into:
// the loader for liblull.so and libunwind, the injector, and the shim while it starts
// and records. `lull attach` refuses where a seccomp filter would kill for one of them.
// A call that the shim makes after it was attached stands here, or a sandbox kills its
// host: tests/integration/seccomp_test.py runs a guest that may make no others.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace lull::abi {

struct SystemCall {
  long number;
  const char* name;
};

#define LULL_CALL(name) \
  { SYS_##name, #name }

inline constexpr SystemCall kSystemCalls[] = {
    // The way back of a thread whose tracer was killed.
    LULL_CALL(rt_sigreturn),
    // dlopen, malloc.
    LULL_CALL(brk),
    LULL_CALL(close),
    LULL_CALL(fstat),
    LULL_CALL(futex),
    LULL_CALL(madvise),
    LULL_CALL(mmap),
    LULL_CALL(mprotect),
    LULL_CALL(mremap),
    LULL_CALL(munmap),
    LULL_CALL(newfstatat),
    LULL_CALL(openat),
    LULL_CALL(pread64),
    LULL_CALL(read),
    // The segment and its handover (entry/, ring/backing.cc).
    LULL_CALL(clock_gettime),
    LULL_CALL(connect),
    LULL_CALL(fcntl),
    LULL_CALL(ftruncate),
    LULL_CALL(geteuid),
    LULL_CALL(getpid),
    LULL_CALL(getsockopt),
    LULL_CALL(gettid),
    LULL_CALL(memfd_create),
    LULL_CALL(ppoll),
    LULL_CALL(prlimit64),
    LULL_CALL(recvfrom),
    LULL_CALL(rt_sigprocmask),
    LULL_CALL(sendmsg),
    LULL_CALL(socket),
    // libunwind.
    LULL_CALL(mincore),
};

// Beyond these, what CUPTI is known to do in a process that has loaded CUDA: it starts
// a thread and asks the driver.
inline constexpr SystemCall kGpuSystemCalls[] = {
    LULL_CALL(clone),
#ifdef SYS_clone3
    LULL_CALL(clone3),
#endif
    LULL_CALL(ioctl),
    LULL_CALL(prctl),
#ifdef SYS_rseq
    LULL_CALL(rseq),
#endif
    LULL_CALL(sched_getaffinity),
    LULL_CALL(set_robust_list),
};

#undef LULL_CALL

}  // namespace lull::abi
