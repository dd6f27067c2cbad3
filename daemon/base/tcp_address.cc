#include "daemon/base/tcp_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lull {
namespace {

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, address, sizeof(v4));
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address->sa_family != AF_INET6) return false;
  sockaddr_in6 v6;
  memcpy(&v6, address, sizeof(v6));
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) &&
          v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

}  // namespace

std::string TcpAddress::text() const {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

std::optional<TcpAddress> ParseTcpAddress(absl::string_view text) {
  size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return std::nullopt;
  }
  absl::string_view host = text.substr(0, colon);
  bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (host.empty() || (!bracketed && absl::StrContains(host, ":"))) return std::nullopt;
  return TcpAddress{std::string(host), absl::StrCat(port)};
}

bool IsPlainHost(const std::string& host) {
  return std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':';
  });
}

bool IsAnyHost(const TcpAddress& address) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST;  // "0" is one, too
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), nullptr, &hints, &found) != 0) return false;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const sockaddr* one = found->ai_addr;
  if (one->sa_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, one, sizeof(v4));
    return v4.sin_addr.s_addr == 0;
  }
  if (one->sa_family != AF_INET6) return false;
  sockaddr_in6 v6;
  memcpy(&v6, one, sizeof(v6));
  constexpr uint8_t kMapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) ||
         memcmp(&v6.sin6_addr, kMapped, sizeof(kMapped)) == 0;
}

std::optional<TcpAddress> OnThisHost(const TcpAddress& address) {
  // RFC 6761, 6.3. Images without an /etc/hosts do not resolve it.
  if (absl::EqualsIgnoreCase(address.host, "localhost")) {
    return TcpAddress{"127.0.0.1", address.port};
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found) != 0) {
    return std::nullopt;
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const addrinfo* chosen = nullptr;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (!IsLoopback(one->ai_addr)) return std::nullopt;
    bool better = chosen == nullptr ||
                  (chosen->ai_family != AF_INET && one->ai_family == AF_INET);
    if (better) chosen = one;
  }
  char text[NI_MAXHOST];
  if (chosen == nullptr || getnameinfo(chosen->ai_addr, chosen->ai_addrlen, text,
                                       sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return TcpAddress{text, address.port};
}

}  // namespace lull
