// Reads the option --listen.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/tcp_address.h"

namespace lull::collector {

struct ListenAddress {
  std::string unix_path;  // "" for TCP
  TcpAddress tcp;
  bool is_unix() const { return !unix_path.empty(); }
  std::string text() const;  // as a user would write it
};

// "unix:PATH", "host:port" or "[v6]:port". INVALID_ARGUMENT for anything else.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// OK if it is possible to listen on a TCP address; else the reason, for a message.
absl::Status ProbeTcp(const TcpAddress& address);

}  // namespace lull::collector
