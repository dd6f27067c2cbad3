// Whether any of the processes that are being read has ended: one question to the
// kernel for all of them, however many there are.
#pragma once

#include "daemon/base/unique_fd.h"

namespace lull::relay {

class EndWatch {
 public:
  EndWatch();

  // -1: a process of which nobody has a descriptor; its end is not seen here.
  void Add(int pidfd);
  // Before it is closed: others may hold the same one, and it would be told on.
  void Remove(int pidfd);
  // Also true when the kernel does not say: whoever asks each process is on the safe
  // side.
  bool Any() const;

 private:
  UniqueFd epoll_;
  bool incomplete_ = false;  // of one the kernel would not tell
};

}  // namespace lull::relay
