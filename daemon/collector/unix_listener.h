// Listens on a unix socket and hands connections of our own user to gRPC.
//
// The socket has mode 0600 and lies in a directory of mode 0700; beyond that, each
// peer's uid is asked of the kernel (SO_PEERCRED): only our own and root's pass.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"

namespace lull::collector {

class UnixListener {
 public:
  // Makes the directory, takes the lock beside the socket (one collector per
  // socket, FAILED_PRECONDITION for the second), replaces what a dead one left.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Create(const std::string& path);
  ~UnixListener();  // as Stop

  // Serves connections to `server` from now on, on a thread of its own.
  void Start(grpc::Server* server);
  // Accepts no more and removes the socket.
  void Stop();

 private:
  UnixListener(std::string path, UniqueFd lock, UniqueFd socket, UniqueFd wakeup);
  void Run(grpc::Server* server);

  const std::string path_;
  UniqueFd lock_;
  UniqueFd socket_;
  UniqueFd wakeup_;
  std::thread thread_;
};

}  // namespace lull::collector
