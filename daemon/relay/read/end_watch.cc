#include "daemon/relay/read/end_watch.h"

#include <sys/epoll.h>

namespace lull::relay {

EndWatch::EndWatch() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void EndWatch::Add(int pidfd) {
  if (pidfd < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  if (!epoll_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd, &event) != 0) {
    incomplete_ = true;
  }
}

void EndWatch::Remove(int pidfd) {
  if (pidfd >= 0 && epoll_) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
}

bool EndWatch::Any() const {
  if (incomplete_) return true;
  epoll_event event;
  return epoll_wait(epoll_.get(), &event, 1, 0) != 0;
}

}  // namespace lull::relay
