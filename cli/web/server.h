// The HTTP of `lull web`: one port of loopback, one request a connection, no files.
//
// What a client may cost is bounded: connections, bytes of a head, the time to send one
// and to take an answer. Who is slow is cut off, and where there are too many, those go
// first that have not said yet what they want.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lull::web {

struct Answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  bool has_policy = false;  // the body is a page with a policy of its own
};

// Makes the answer to what may be seen ("job/3f9a" and what follows the '?'); called on
// one thread, may take its time.
using Handler =
    std::function<Answer(const std::string& path, const std::string& query)>;

struct ServerOptions {
  uint16_t port = 0;                            // 0: any that is free
  absl::Duration patience = absl::Seconds(10);  // for a request's head
  absl::Duration slowest = absl::Seconds(60);   // for an answer to be taken
  size_t most_connections = 32;
};

class Server {
 public:
  // Listens on 127.0.0.1. UNAVAILABLE where the port is not to be had.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(const ServerOptions& options,
                                                        Handler handler);
  virtual ~Server() = default;

  // With the secret, for the user alone.
  virtual std::string Address() const = 0;
  // Until SIGINT or SIGTERM, which it has to itself from Listen() on.
  virtual void Run() = 0;
};

}  // namespace lull::web
