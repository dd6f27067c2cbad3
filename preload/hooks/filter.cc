// prctl and syscall, so that lull knows before a seccomp filter comes into force
// (entry/sandbox.h): libseccomp installs its filters by one of them.
//
// A look at the arguments, then a jump to the original, as in waits.cc: it finds stack
// and return address as the caller left them, so that a syscall() which returns twice
// does so as without us. The stack is not even written: it may hold no seventh argument
// but a variable of the caller's, which another thread changes at this moment. So where
// that one is not in a register, the hook has six parameters, and never learns of it.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>

#include "preload/entry/sandbox.h"
#include "preload/hooks/filter_originals.h"
#include "preload/support/symbols.h"

#if defined(__x86_64__)
#define LULL_LAST_PARAMETER
#define LULL_LAST_ARGUMENT
#else
#define LULL_LAST_PARAMETER , long f
#define LULL_LAST_ARGUMENT , f
#endif

namespace lull {
namespace {

using Prctl = int(int, long, long, long, long);
using Syscall = long(long, long, long, long, long, long LULL_LAST_PARAMETER);

std::atomic<Prctl*> g_prctl{nullptr};
std::atomic<Syscall*> g_syscall{nullptr};

// A hook may be called before our constructor: the originals are looked up by whoever
// comes first. libc has both, whatever its age.
__attribute__((cold, noinline)) void resolve() {
  NextSymbol symbols[] = {{"prctl", nullptr}, {"syscall", nullptr}};
  find_next_symbols(symbols, 2);
  g_prctl.store(reinterpret_cast<Prctl*>(symbols[0].address),
                std::memory_order_relaxed);
  g_syscall.store(reinterpret_cast<Syscall*>(symbols[1].address),
                  std::memory_order_relaxed);
}

template <typename Function>
Function* original(std::atomic<Function*>& slot) {
  Function* function = slot.load(std::memory_order_relaxed);
  if (__builtin_expect(function != nullptr, 1)) return function;
  resolve();
  return slot.load(std::memory_order_relaxed);
}

// Without a program it is a question, of what the kernel can do.
bool installs(long option, long mode, long program) {
  if (option != PR_SET_SECCOMP) return false;
  return mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && program != 0);
}

bool installs_by_call(long number, long a, long b, long c) {
  if (number == SYS_prctl) return installs(a, b, c);
  return a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c != 0);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int lull_prctl_hook(
    int option, long a, long b, long c, long d) __asm__("prctl");
extern "C" __attribute__((visibility("default"))) long lull_syscall_hook(
    long number, long a, long b, long c, long d,
    long e LULL_LAST_PARAMETER) __asm__("syscall");

int lull_prctl_hook(int option, long a, long b, long c, long d) {
  if (__builtin_expect(installs(option, a, b), 0)) filter_is_coming();
  return original(g_prctl)(option, a, b, c, d);
}

long lull_syscall_hook(long number, long a, long b, long c, long d,
                       long e LULL_LAST_PARAMETER) {
  if (__builtin_expect(number == SYS_seccomp || number == SYS_prctl, 0) &&
      installs_by_call(number, a, b, c)) {
    filter_is_coming();
  }
  return original(g_syscall)(number, a, b, c, d, e LULL_LAST_ARGUMENT);
}

extern "C" __attribute__((visibility("hidden"), alias("prctl"))) int lull_own_prctl(
    int option, long a, long b, long c, long d);
extern "C" __attribute__((visibility("hidden"), alias("syscall"))) long
lull_own_syscall(long number, long a, long b, long c, long d,
                 long e LULL_LAST_PARAMETER);

void* original_prctl() { return reinterpret_cast<void*>(original(g_prctl)); }
void* original_syscall() { return reinterpret_cast<void*>(original(g_syscall)); }

}  // namespace lull
