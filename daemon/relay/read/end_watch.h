// Whether any of the processes that are being read has ended: one question to the
// kernel for all of them, however many there are.
#pragma once

#include "daemon/base/unique_fd.h"

namespace lull::relay {

class EndWatch {
 public:
  EndWatch();

  // -1: nobody has a descriptor of the process, so that its end is not seen here.
  void Add(int pidfd);
  // Call this before it is closed. Somebody else may hold the same descriptor, which
  // would be reported from then on.
  void Remove(int pidfd);
  // Also true when the kernel does not say: whoever asks each process is on the safe
  // side.
  bool Any() const;

 private:
  UniqueFd epoll_;
  bool incomplete_ = false;  // the kernel does not say of one of them
};

}  // namespace lull::relay
