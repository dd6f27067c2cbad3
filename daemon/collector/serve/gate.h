// What every call passes first: the token for what it wants is checked, and the call
// counts as a sign of life. On a unix socket the kernel says who the peer is, see
// unix_listener.h.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "absl/time/time.h"
#include "daemon/base/tokens.h"

namespace lull::collector {

// Thread-safe.
class Gate {
 public:
  // `over_tcp`: peers come from anywhere, so they need a token for everything. On a
  // unix socket no tokens means that none are asked for.
  Gate(Tokens tokens, bool over_tcp);

  // UNAUTHENTICATED when the call does not carry the token for `right` as
  // "authorization: Bearer TOKEN".
  grpc::Status Check(const grpc::ServerContextBase& context, Right right);
  // The same with any of the tokens: for calls that only ask whether a collector is
  // there, and which.
  grpc::Status CheckAny(const grpc::ServerContextBase& context);
  // PERMISSION_DENIED over TCP, whatever the call carries.
  grpc::Status CheckShutdown(const grpc::ServerContextBase& context);

  void StreamOpened();
  void StreamClosed();
  uint32_t open_streams() const { return open_streams_.load(); }

  // How long there has been neither an open stream nor a call.
  absl::Duration IdleTime() const;

 private:
  void Touch();
  grpc::Status Admit(const grpc::ServerContextBase& context,
                     std::initializer_list<Right> rights);

  const Tokens tokens_;
  const bool over_tcp_;
  std::atomic<uint32_t> open_streams_{0};
  std::atomic<uint64_t> last_ns_;
};

}  // namespace lull::collector
