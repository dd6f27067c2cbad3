// Listens on a unix socket and hands connections of our own user to gRPC.
//
// Nobody can connect before the server is there. So whoever gets in gets an answer, and
// whoever starts a collector that ends at once learns why.
//
// The socket has mode 0600 and lies in a directory of mode 0700; beyond that, each
// peer's uid is asked of the kernel (SO_PEERCRED): only our own and root's pass.
//
// The directory may be removed while we listen (logind does so at the last logout), and
// then nobody can find us. So we look a few times a second whether the socket is still
// there, and make all of it anew as soon as that is possible.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"

namespace lull::collector {

class UnixListener {
 public:
  // Makes the directory and takes the lock beside the socket: one collector per
  // socket, FAILED_PRECONDITION for the second.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Create(const std::string& path);
  ~UnixListener();  // as Stop

  // Makes the socket, also where a dead collector left one, and serves connections to
  // `server` from now on, on a thread of its own. Once.
  absl::Status Start(grpc::Server* server);
  // Accepts no more and removes the socket.
  void Stop();
  // The socket was removed, and by now somebody else listens there for good: nobody
  // will find us any more. Thread-safe.
  bool superseded() const { return superseded_.load(); }

 private:
  // Which file a path names; a file that is removed and made again is another one.
  struct FileId {
    uint64_t device = 0;
    uint64_t inode = 0;
    bool operator==(const FileId&) const = default;
  };
  static FileId IdOf(const std::string& path);  // {}: there is no such file
  bool SocketIsThere() const;
  UnixListener(std::string path, UniqueFd lock, UniqueFd wakeup);
  void Run(grpc::Server* server);
  void Accept(grpc::Server* server);
  void ListenAgainIfGone();

  const std::string path_;
  UniqueFd lock_;
  UniqueFd socket_;
  UniqueFd wakeup_;
  FileId made_;    // the socket that is ours
  int tries_ = 0;  // to listen again while somebody else has the lock
  std::atomic<bool> superseded_{false};
  std::thread thread_;
};

}  // namespace lull::collector
