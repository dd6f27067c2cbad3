// Native stacks by libunwind, which is loaded with dlopen into a scope of its own:
// as a DT_NEEDED of a preloaded library its _Unwind_* would take over C++ exception
// handling, and make a throw 24 times slower.
//
// unw_backtrace() keeps a cache per thread: 0.3 to 0.6 ms for the first stack of a
// thread, about 50 us for a call path not met before, then 0.2 us at 20 frames and
// 0.8 us at 90.
//
// Hazards, and what is done about them
//  * A cold unwind takes the loader's list lock (dl_iterate_phdr) and libunwind's
//    own. A thread that forks while another is inside leaves them locked in the
//    child. So threads inside are counted; a child that inherits a count other than
//    zero never unwinds.
//  * A cold unwind maps memory and allocates. Callers are hooks of CUDA, libc
//    waits and PyTorch's allocators, never of malloc.
//  * Code that is unloaded (dlclose) and replaced at the same address may be unwound
//    with what is cached of the old code. libunwind checks the addresses that it
//    reads on such a path; the stack may be wrong, the process stays alive.
//  * It blocks signals for a moment and may not run in a signal handler. Hooked
//    functions that a handler may call (read, poll) must not take native stacks
//    there; none of ours is entered twice on a thread (guard.h).
#include "preload/stacks/native.h"

#include <string.h>

#include <atomic>

#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/stacks/interning.h"
#include "preload/stacks/libunwind_calls.h"
#include "preload/stacks/stacks.h"
#include "preload/support/libdl.h"
#include "preload/support/own_code.h"
#include "preload/support/raw_syscall.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

#if defined(__x86_64__)
#define LULL_UNW(name) "_ULx86_64_" name
#elif defined(__aarch64__)
#define LULL_UNW(name) "_ULaarch64_" name
#else
#error "native stacks: unknown architecture"
#endif

constexpr char kLibrary[] = "libunwind.so.8";
constexpr int kCachePerThread = 2;  // UNW_CACHE_PER_THREAD of libunwind.h
constexpr size_t kCacheSize = 1024;

using Backtrace = int (*)(void** addresses, int size);
std::atomic<Backtrace> g_backtrace{nullptr};
std::atomic<bool> g_tried{false};
pid_t g_loaded_by = 0;

// Threads inside libunwind at this moment. In a fork child: those of the parent.
std::atomic<uint32_t> g_inside{0};

int backtrace(Backtrace unwind, void** addresses, int size) {
  g_inside.fetch_add(1, std::memory_order_relaxed);
  int depth = unwind(addresses, size);
  g_inside.fetch_sub(1, std::memory_order_relaxed);
  return depth;
}

// `name` in the folder of liblull.so, or nullptr. The system's libunwind is not looked for:
// redirect_calls_of() would refuse it.
void* open_beside_us(const char* name) {
  const link_map* self = libdl::object_of(&__ehdr_start);
  const char* slash = self == nullptr ? nullptr : strrchr(self->l_name, '/');
  if (slash == nullptr) return nullptr;
  char path[4096];
  size_t folder = static_cast<size_t>(slash + 1 - self->l_name);
  size_t length = strlen(name) + 1;
  if (folder + length > sizeof path) return nullptr;
  memcpy(path, self->l_name, folder);
  memcpy(path + folder, name, length);
  return libdl::open(path, RTLD_NOW | RTLD_LOCAL);
}

void load_library() {
  libdl::Dlsym look_up = libdl::real_dlsym();
  void* handle = look_up == nullptr ? nullptr : open_beside_us(kLibrary);
  if (handle == nullptr || !redirect_calls_of(*static_cast<link_map*>(handle))) return;
  auto unwind = reinterpret_cast<Backtrace>(look_up(handle, "unw_backtrace"));
  auto policy = reinterpret_cast<int (*)(void*, int)>(
      look_up(handle, LULL_UNW("set_caching_policy")));
  auto size = reinterpret_cast<int (*)(void*, size_t, int)>(
      look_up(handle, LULL_UNW("set_cache_size")));
  auto* space = reinterpret_cast<void**>(look_up(handle, LULL_UNW("local_addr_space")));
  if (unwind == nullptr || space == nullptr) return;
  if (policy != nullptr) policy(*space, kCachePerThread);
  if (size != nullptr) size(*space, kCacheSize, 0);
  g_backtrace.store(unwind, std::memory_order_release);
}

// glibc 2.32 and later say so; before that we do not know.
bool is_single_threaded() {
  static const char* const flag = static_cast<const char*>(symbol_beside(
      reinterpret_cast<const void*>(gnu_get_libc_version), "__libc_single_threaded"));
  return flag != nullptr && *flag != 0;
}

void describe(char* segment) {
  abi::NativeStackState state = abi::NativeStackState::kUnknown;
  if (g_backtrace.load(std::memory_order_relaxed) != nullptr) {
    state = abi::NativeStackState::kOn;
  } else if (g_tried.load(std::memory_order_relaxed)) {
    state = abi::NativeStackState::kNoLibrary;
  }
  abi::SegmentView(segment).header().native_stacks.store(static_cast<uint32_t>(state),
                                                         std::memory_order_relaxed);
}

}  // namespace

std::atomic<bool> g_stacks_wanted{false};

void stacks_load() {
  if (g_tried.exchange(true, std::memory_order_relaxed)) return;
  g_loaded_by = raw_getpid();
  load_library();
}

void stacks_load_late() {
  if (!g_stacks_wanted.exchange(false, std::memory_order_relaxed)) return;
  ErrnoKeeper keep_errno;
  stacks_load();
  if (g_state->mode.load(std::memory_order_acquire) == Mode::kRecording) {
    describe(g_state->segment.load(std::memory_order_relaxed));
  }
}

void native_prepare(char* segment) {
  if (!g_tried.load(std::memory_order_relaxed)) {
    if (is_single_threaded()) {
      stacks_load();
    } else {
      g_stacks_wanted.store(true, std::memory_order_relaxed);
    }
  }
  // No thread of a fork child can be inside yet: a count is the parent's.
  if (g_inside.load(std::memory_order_relaxed) != 0 && g_loaded_by != raw_getpid()) {
    g_backtrace.store(nullptr, std::memory_order_relaxed);
  }
  describe(segment);
}

abi::Ref native_stack(char* segment, int skip) {
  uint32_t thinning =
      abi::SegmentView(segment).control().thinning.load(std::memory_order_relaxed);
  return thinning < abi::kThinNativeStacks ? unthinned_native_stack(segment, skip) : 0;
}

abi::Ref unthinned_native_stack(char* segment, int skip) {
  Backtrace unwind = g_backtrace.load(std::memory_order_acquire);
  if (unwind == nullptr) return 0;
  // Room for our own frames, and one more to know that there were more.
  constexpr int kOwnFrames = 8;
  uint64_t addresses[abi::kMaxNativeFrames + kOwnFrames + 1];
  static_assert(sizeof(uint64_t) == sizeof(void*));
  int depth = backtrace(unwind, reinterpret_cast<void**>(addresses),
                        static_cast<int>(sizeof addresses / sizeof *addresses));
  int first = 0;
  while (first < depth && is_our_code(reinterpret_cast<void*>(addresses[first])))
    ++first;
  first += skip;
  if (first >= depth) return 0;

  uint32_t flags = 0;
  uint32_t count = static_cast<uint32_t>(depth - first);
  if (count > abi::kMaxNativeFrames) {
    count = abi::kMaxNativeFrames;
    flags = abi::kStackTruncated;
  }
  uint64_t* words = addresses + first;
#if defined(__aarch64__)
  // libunwind 1.6 hands out the return addresses of callers less one.
  for (uint32_t i = 0; i < count; ++i) words[i] = (words[i] + 3) & ~uint64_t{3};
#endif
  return intern_stack(segment, abi::EntryKind::kNativeStack, words, count, flags);
}

}  // namespace lull
