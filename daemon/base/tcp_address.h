// Addresses of TCP, and whether what is sent to one stays on this host.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lull {

struct TcpAddress {
  std::string host;  // without brackets
  std::string port;  // a number up to 65535

  std::string text() const;  // "host:port", "[v6]:port"
};

// "host:port" or "[v6]:port"; nullopt for anything else.
std::optional<TcpAddress> ParseTcpAddress(absl::string_view text);

// A name, or an address by its number: nothing that is more than that to whoever takes it
// apart (gRPC undoes "%2E").
bool IsPlainHost(const std::string& host);
// All addresses of a host, so none to connect to: 0.0.0.0 and [::].
bool IsAnyHost(const TcpAddress& address);

// The address by number, when everything that the host's name stands for lies on this
// host; one of IPv4 is preferred. nullopt when some of it does not, or when the name
// cannot be resolved: names are looked up by whoever answers, so whether a name looks
// local says nothing. May ask DNS. Connect to what is returned, not to the name, which
// may mean something else a moment later.
std::optional<TcpAddress> OnThisHost(const TcpAddress& address);

}  // namespace lull
