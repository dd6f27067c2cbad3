// Requests to an HTTP server of others: one connection each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/tcp_address.h"

namespace lull::http {

struct Peer {
  TcpAddress address;
  bool tls = false;
  std::string roots;  // PEM text of the CAs to trust, with TLS

  std::string url() const;  // "https://host:8443"
};

struct Response {
  int status = 0;
  std::string body;
};

// One thread at a time, but for Cancel().
class Client {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // INVALID_ARGUMENT: certificates that are none. `is_over` is asked five times a
  // second while an answer is awaited; once it is true Post() ends with CANCELLED.
  static absl::StatusOr<std::unique_ptr<Client>> Make(
      Peer peer, std::function<bool()> is_over = nullptr);
  virtual ~Client() = default;

  // Any answer is one, whatever its status. UNAVAILABLE: there is none, and why;
  // DEADLINE_EXCEEDED: not within `patience` (a name that the system is looking up is
  // waited for, which it bounds itself); CANCELLED.
  virtual absl::StatusOr<Response> Post(const std::string& target,
                                        const Headers& headers, std::string body,
                                        absl::Duration patience) = 0;

  // Thread-safe: until Resume() every Post() ends with CANCELLED, also one under way.
  virtual void Cancel() = 0;
  virtual void Resume() = 0;
};

}  // namespace lull::http
