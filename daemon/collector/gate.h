// What every call passes first: the token is checked, and the call counts as a sign
// of life. On a unix socket the kernel says who the peer is, see unix_listener.h.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace lull::collector {

// Thread-safe.
class Gate {
 public:
  explicit Gate(std::string token);  // "" = none needed

  // UNAUTHENTICATED when there is a token and the call does not carry it as
  // "authorization: Bearer TOKEN".
  grpc::Status Check(const grpc::ServerContextBase& context);

  void StreamOpened();
  void StreamClosed();
  uint32_t open_streams() const { return open_streams_.load(); }

  // How long there has been neither an open stream nor a call.
  absl::Duration IdleTime() const;

 private:
  void Touch();

  const std::string token_;
  std::atomic<uint32_t> open_streams_{0};
  std::atomic<uint64_t> last_ns_;
};

}  // namespace lull::collector
