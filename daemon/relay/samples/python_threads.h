// Finds the other threads of a process that run Python, from the state of its main
// thread. States are in a list, and each knows its pthread. The kernel's number of a
// thread is in its pthread, at the place where the main thread's pthread has the number
// of the process. That place is searched for, so that no layout of a libc needs to be
// known. A number that is found this way counts only if the process has such a thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/samples/layout.h"
#include "daemon/relay/samples/memory.h"

namespace lull::relay {

struct PythonThread {
  uint32_t tid = 0;
  uint64_t state = 0;   // PyThreadState
  uint64_t thread = 0;  // pthread_self()

  bool operator==(const PythonThread&) const = default;
};

class PythonThreads {
 public:
  static constexpr size_t kMost = 4;

  PythonThreads(pid_t pid, std::shared_ptr<const UniqueFd> memory)
      : pid_(pid), memory_(pid, std::move(memory)) {}

  // All but the main one, kMost at most. Those that are known already cost two reads.
  std::vector<PythonThread> Others(const FrameLayout& layout, uint64_t main_state,
                                   uint64_t main_thread);

 private:
  struct Links {
    uint64_t previous = 0;
    uint64_t next = 0;
  };
  // Adds the states on one side of the main one: those that are newer, or older.
  void Walk(const FrameLayout& layout, uint64_t main_state, bool newer,
            std::vector<PythonThread>* found);
  uint32_t TidOf(uint64_t thread, uint64_t main_thread);

  const pid_t pid_;
  TargetMemory memory_;
  std::vector<PythonThread> known_;
};

}  // namespace lull::relay
