// --listen, understood.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lull::collector {

struct ListenAddress {
  std::string unix_path;  // "" for TCP
  std::string host;       // without brackets
  std::string port;
  bool is_unix() const { return !unix_path.empty(); }
  bool is_loopback() const;  // also true for unix
  std::string tcp() const;   // "host:port", "[v6]:port"
  std::string text() const;  // as a user would write it
};

// "unix:PATH", "host:port" or "[v6]:port". INVALID_ARGUMENT for anything else.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Why one cannot listen on a TCP address, for a message; OK if one can.
absl::Status ProbeTcp(const ListenAddress& address);

}  // namespace lull::collector
