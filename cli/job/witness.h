// Tells a signal to the whole process group from a signal to lull alone.
//
// A job shares lull's process group, so what the terminal (Ctrl-C) or `kill %1`
// sends reaches it without our help, and what is sent to lull's pid has to be
// forwarded: each exactly once. The kernel does not say which of the two a signal
// was. So another process, which does nothing else, is in the group: a signal that it
// also got was for all.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/unique_fd.h"

namespace lull {

class Witness {
 public:
  // Call it while there is one thread. The process ends with its parent.
  static absl::StatusOr<std::unique_ptr<Witness>> Fork();
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  int fd() const { return seen_pipe_.get(); }

  // Takes note of what the witness got; call it when fd() is readable.
  void Drain();

  // Whether the group got `signal`, which lull has just received. Waits for the witness
  // if needed: usually not at all, and for kGrace at most when the signal was not for
  // the group.
  bool Saw(int signal);

 private:
  // The kernel signals the members of a group one after the other, within
  // microseconds. Two equal signals this close together count as one, as pending
  // signals do.
  static constexpr absl::Duration kGrace = absl::Milliseconds(20);

  Witness() = default;
  bool SawLately(int signal, absl::Time received) const;
  // The witness sleeps and has nothing pending: it will not see the signal any more.
  bool HasNothingToSay(int signal) const;

  pid_t pid_ = -1;
  UniqueFd seen_pipe_;
  std::array<absl::Time, 65> seen_ = {};
};

}  // namespace lull
