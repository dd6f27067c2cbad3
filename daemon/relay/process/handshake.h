// The relay's side of preload/abi/handshake.h: a listening socket on which targets
// hand their segments over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"
#include "events.pb.h"
#include "preload/abi/handshake.h"

namespace lull::relay {

// A target that said hello and passed all checks.
struct Newcomer {
  pid_t pid = 0;    // as we see it; 0 when it is outside of our pid namespace
  UniqueFd memfd;   // sealed, of the right size
  UniqueFd memory;  // its own memory for reading; none where it gave none
  UniqueFd pidfd;   // none when pid is 0 or the target is gone already
  lull::v1::ProcessInfo info;  // without key
  // This is a DataLoader worker. It has no segment of its own: the relay made this one.
  bool loader = false;
};

// Makes the directory (0700) and listens with mode 0600. A socket that nobody
// listens on any more is replaced; ALREADY_EXISTS when somebody does.
absl::StatusOr<UniqueFd> ListenForTargets(const std::string& path);

// A socket of ListenForTargets() that may be removed while we listen: logind removes a
// user's runtime folder at the last logout, and jobs go on. One thread.
class TargetSocket {
 public:
  TargetSocket(std::string path, UniqueFd listener);

  int fd() const { return listener_.get(); }
  // Looks whether targets can still find the socket, at most once a second, and listens
  // anew if they cannot and it can be. True: fd() is another one now.
  bool Check(uint64_t now_ns);
  // Looks once more, as the job ends: it may have been removed a moment ago.
  void LookAtEnd(uint64_t now_ns) { (void)IsThere(now_ns); }
  // How long targets could not find it.
  uint64_t unreachable_ns(uint64_t now_ns) const {
    return unreachable_ns_ + (gone_since_ns_ != 0 ? now_ns - gone_since_ns_ : 0);
  }
  // Removes it, if it is ours.
  void Unlink();

 private:
  bool IsOurs() const;
  bool IsThere(uint64_t now_ns);
  void Remember();

  const std::string path_;
  UniqueFd listener_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t looked_ns_ = 0;
  uint64_t seen_ns_ = 0;        // when it was last there
  uint64_t gone_since_ns_ = 0;  // 0: it is there
  uint64_t unreachable_ns_ = 0;
};

// Never blocks; one thread.
class HandshakeListener {
 public:
  // The descriptor is not owned. Targets of `user` are welcome, besides root's and our
  // own.
  explicit HandshakeListener(int listen_fd, uint32_t user = UINT32_MAX);

  // Readable when Poll() has something to do.
  int fd() const { return epoll_.get(); }

  // Accepts, reads hellos, checks them, hands newcomers to `accept` and answers
  // Welcome if that returns true.
  void Poll(absl::FunctionRef<bool(Newcomer)> accept);

  uint32_t refused() const { return refused_; }
  // Processes that said that they have no segment to give.
  uint32_t unrecorded() const { return unrecorded_; }

 private:
  struct Connection {
    UniqueFd fd;
    uint64_t since_ns;
  };
  void AcceptAll();
  bool TurnAway();
  void ForgetIf(absl::FunctionRef<bool(const Connection&)> gone);
  // False: nothing has come yet.
  bool Serve(int fd, absl::FunctionRef<bool(Newcomer)> accept);
  static void AcceptWorker(const abi::WorkerHello& packet, Newcomer newcomer,
                           absl::FunctionRef<bool(Newcomer)> accept);

  int listen_fd_;
  uint32_t user_;
  UniqueFd epoll_;
  UniqueFd reserve_;  // given up to accept and turn away, when there is no other
  std::list<Connection> connections_;
  uint32_t refused_ = 0;
  uint32_t unrecorded_ = 0;
};

}  // namespace lull::relay
