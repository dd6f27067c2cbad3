// One thread is stopped, looked at, and either let go at once or made to do the call.
#pragma once

#include <sys/types.h>

#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/attach/inject/arch.h"
#include "daemon/attach/inject/elf_image.h"
#include "daemon/attach/inject/inject.h"
#include "daemon/attach/inject/landscape.h"
#include "daemon/attach/inject/safety.h"

namespace lull::inject {

struct Attempt {
  enum End {
    kDone,    // `outcome`, but for tid, looks and other threads
    kUnsafe,  // `objection`; it runs on as if nothing had been
    kGone,    // the thread has ended, or did before the call
    kLoaded,  // that is all: the function waits for a stop of its own
    kFailed,  // `status`
  };
  End end = kGone;
  Outcome outcome;
  Objection objection;
  absl::Status status;
  Held held;
  uint64_t tp = 0;  // the thread's pointer; 0: it was not looked at
};

// `stack`: memory that ReadStack() may use, touched before: nothing new is to be
// allocated while a thread stands. `loaded`: an attempt has ended with kLoaded before;
// where the library cannot be found all the same, both is done in one stop.
Attempt MakeAttempt(const Request& request, const Arch& arch,
                    const Landscape& landscape, const ElfImage& identity,
                    std::span<uint64_t> stack, pid_t tid, bool loaded);

}  // namespace lull::inject
