// Calls one exported function of a library on a thread of another process, and
// leaves that thread exactly as it was.
//
// No text, no GOT and no mapping of the target is changed by this. The thread is
// stopped where it holds no lock of the loader or of malloc, and its registers are
// set so that it makes the call itself and then restores itself through a signal
// frame on its own stack: a tracer that dies half-way leaves nothing behind.
// docs/decisions/attach.md has the reasons.
//
// The caller must not reap children of other threads meanwhile (waitpid(-1) without
// __WNOTHREAD): a traced thread's stops would be swallowed.
//
// Example:
//   Request request{.pid = 4312, .library = "/opt/lull/liblull.so",
//                   .identity = "/opt/lull/liblull.so", .function = "lull_attach"};
//   LULL_ASSIGN_OR_RETURN(Outcome outcome, Injector().Call(request, cancel));
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lull::inject {

inline constexpr size_t kMaxArgument = 4096;

// What Outcome::result is when the function returned without setting it.
inline constexpr int64_t kResultNotSet = INT64_MIN;

struct Request {
  pid_t pid = 0;
  // As the target sees it; dlopen(RTLD_NOW | RTLD_LOCAL) unless it is mapped already,
  // in a stop of its own.
  std::string library;
  // The same file as we see it. An object of the target with the same device and
  // inode, build id or soname is "mapped already".
  std::string identity;
  // Exported: void f(const void* argument, size_t size, int64_t* result)
  std::string function;
  std::string argument;  // copied onto the target's stack (aligned 16)
  // False: only where the library is mapped already. Where it is not no thread is
  // stopped.
  bool load = true;
  absl::Duration patience = absl::Seconds(10);  // to find a safe moment
};

// How long a thread was kept from running.
struct Held {
  absl::Duration time;
  // Of it, how long it wanted to run and waited for a processor; zero where the kernel
  // does not tell. The rest was for us.
  absl::Duration waited;
  bool operator<(const Held& other) const { return time < other.time; }
};

// The longest stops of one call, or of several.
struct Stops {
  Held running;   // of a thread that ran, or was about to
  Held sleeping;  // of one that waited for something: late if that came meanwhile

  void Add(const Held& stop, bool waited) {
    Held& longest = waited ? sleeping : running;
    longest = std::max(longest, stop);
  }
  void Add(const Stops& more) {
    running = std::max(running, more.running);
    sleeping = std::max(sleeping, more.sleeping);
  }
};

struct Outcome {
  bool absent = false;  // that is all: it is not there, and was not to be loaded
  int64_t result = 0;
  bool loaded = false;  // by this call
  pid_t tid = 0;        // the thread that did it
  bool thread_was_blocked = false;
  absl::Duration stopped;        // how long that thread was kept from running for it
  absl::Duration loading;        // how long one was for dlopen, before that
  absl::Duration longest_other;  // longest stop of any other thread
  int looks = 0;                 // threads stopped and let go before one was safe
};

// Calls into one process. What it learned of the process's code it knows at the next
// call: an attach makes dozens. One thread at a time.
class Injector {
 public:
  Injector();
  ~Injector();

  // `cancel` may become true at any moment (Ctrl-C): the call in flight is still
  // completed, because a half-done one could not be taken back.
  //
  // NOT_FOUND: no such process, or it ended meanwhile. PERMISSION_DENIED: ptrace says
  // so. FAILED_PRECONDITION: a process that this cannot be done to (stopped, traced by
  // another, static, musl, 32-bit ...). DEADLINE_EXCEEDED: no safe moment within
  // `patience`. CANCELLED: before anything was done. INTERNAL: the target's loader
  // refused the library, or the call crashed. UNIMPLEMENTED: not on this machine.
  absl::StatusOr<Outcome> Call(const Request& request, const std::atomic<bool>& cancel);

  // The longest stops for any of its calls, also those that came to nothing.
  const Stops& stops() const { return stops_; }

 private:
  struct Known;
  std::unique_ptr<Known> known_;
  Stops stops_;
};

}  // namespace lull::inject
