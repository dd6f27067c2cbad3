#include "daemon/relay/process/job_life.h"

#include <poll.h>

namespace lull::relay {
namespace {

// Without a keeper: how long after the last target.
constexpr uint64_t kOrphanQuietNs = 1'000'000'000;

bool HasEnded(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

}  // namespace

void JobLife::Ended(int exit_status, uint64_t now_ns) {
  exit_status_ = exit_status;
  ended_ns_ = now_ns;
}

void JobLife::LoseKeeper(uint64_t now_ns) {
  keeper_ = false;
  quiet_since_ns_ = alive_ns_ = now_ns;
}

bool JobLife::IsOver(uint64_t now_ns, bool targets) {
  bool over = false;
  if (exit_status_) {
    over = !targets || now_ns - ended_ns_ > grace_ns_;
  } else if (!keeper_) {
    if (targets || (pidfd_ && !HasEnded(pidfd_.get()))) quiet_since_ns_ = now_ns;
    over = now_ns - quiet_since_ns_ > kOrphanQuietNs;
  }
  if (!over) alive_ns_ = now_ns;
  return over;
}

void JobLife::Fill(uint64_t now_ns, lull::v1::JobEnd* end) const {
  end->set_end_ns(exit_status_ ? ended_ns_ : now_ns);
  end->set_known(exit_status_ && *exit_status_ >= 0);
  end->set_exit_status(exit_status_.value_or(-1));
}

}  // namespace lull::relay
