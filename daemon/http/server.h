// The HTTP of `lull web` and of `lulld --metrics`: one port of one address, one request
// a connection, no files.
//
// What a client may cost is bounded: connections, bytes of a head, the time to send one
// and to take an answer. Who is slow is cut off, and where there are too many, those go
// first that have not said yet what they want.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lull::http {

// The head of a request, as far as anybody asks about it.
struct Request {
  std::string method;
  std::string target;  // "/job/3f9a?x=y"
  std::string host;
  std::string origin;
  std::string fetch_site;  // Sec-Fetch-Site
  std::string cookies;
  std::string authorization;
  bool has_body = false;
  bool has_one_of_each = true;  // false: one of these headers came twice
};

// What becomes of a request. 200: the handler makes the answer; else this is the
// answer.
struct Decision {
  int status = 0;
  std::string path;   // for the handler: "job/3f9a"
  std::string query;  // for the handler: what follows the '?'
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

struct Answer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  bool has_policy = false;  // the body is a page with a policy of its own
};

// Who may see what, by a request's head alone; called on the thread of Run(), and must
// not wait.
using Doorkeeper = std::function<Decision(const Request& request)>;
// Makes the answer to what may be seen; called on one thread of its own, one call at a
// time, and may take its time.
using Handler =
    std::function<Answer(const std::string& path, const std::string& query)>;

struct ServerOptions {
  std::string address = "127.0.0.1";            // by its number, IPv4 or IPv6
  uint16_t port = 0;                            // 0: any that is free
  absl::Duration patience = absl::Seconds(10);  // for a request's head
  absl::Duration slowest = absl::Seconds(60);   // for an answer to be taken
  size_t most_connections = 32;
  // SIGINT and SIGTERM end Run(): the server has them to itself from Listen() on.
  bool ends_by_signals = false;
};

class Server {
 public:
  // UNAVAILABLE where the port is not to be had; INVALID_ARGUMENT for what is no
  // address.
  static absl::StatusOr<std::unique_ptr<Server>> Listen(const ServerOptions& options,
                                                        Doorkeeper doorkeeper,
                                                        Handler handler);
  // Not while Run() goes on. Waits for a handler that is at work.
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;  // that it got
  // Until Stop(), or a signal. Once.
  virtual void Run() = 0;
  // Thread-safe; also before Run(). Answers under way are cut off.
  virtual void Stop() = 0;
};

}  // namespace lull::http
