#include "daemon/relay/symbols/symbol_rights.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/unique_fd.h"

namespace lull::relay {
namespace {

constexpr uid_t kNobody = 65534;
// The libraries of a CUDA job are mapped (some GiB), what is made of them is not much.
constexpr rlim_t kMaxMapped = rlim_t{64} << 30;
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadow = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
constexpr bool kHasShadow = true;
#else
constexpr bool kHasShadow = false;
#endif
#else
constexpr bool kHasShadow = false;
#endif

void Limit(int resource, rlim_t value) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  if (value > limit.rlim_max) value = limit.rlim_max;
  limit = {value, value};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

void GoFirst() {
  UniqueFd file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file && write(file.get(), "1000", 4) != 4) return;  // it stays as it was
}

bool Become(uid_t uid, gid_t gid) {
  if (setgroups(0, nullptr) != 0 || setresgid(gid, gid, gid) != 0 ||
      setresuid(uid, uid, uid) != 0) {
    return false;
  }
  uid_t real = 0, effective = 0, saved = 0;
  return getresuid(&real, &effective, &saved) == 0 && real == uid && effective == uid &&
         saved == uid;
}

bool DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

bool GiveUpRights(uid_t uid, gid_t gid) {
  GoFirst();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (geteuid() == 0 && !Become(uid == 0 ? kNobody : uid, gid == 0 ? kNobody : gid) &&
      uid != 0) {
    return false;
  }
  if (!DropCapabilities()) return false;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);
  if (!kHasShadow) {
    Limit(RLIMIT_AS, kMaxMapped);
    Limit(RLIMIT_DATA, kMaxMemory);
  }
  return true;
}

void ForkNoMore() { Limit(RLIMIT_NPROC, 0); }

void AllowCpu(unsigned seconds) {
  rusage used = {};
  rlimit limit = {};
  if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) return;
  rlim_t until = static_cast<rlim_t>(used.ru_utime.tv_sec) +
                 static_cast<rlim_t>(used.ru_stime.tv_sec) + 1 + seconds;
  if (until > limit.rlim_max) until = limit.rlim_max;
  limit.rlim_cur = until;
  setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace lull::relay
