#include "daemon/collector/serve/listen_address.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull::collector {

std::string ListenAddress::text() const {
  return is_unix() ? absl::StrCat("unix:", unix_path) : tcp.text();
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  ListenAddress address;
  if (absl::ConsumePrefix(&text, "unix:")) {
    absl::ConsumePrefix(&text, "//");
    address.unix_path = std::string(text);
    if (!absl::StartsWith(text, "/")) {
      return absl::InvalidArgumentError(
          absl::StrCat("unix:", text, ": the path of a socket must be absolute"));
    }
    if (text.size() >= sizeof(sockaddr_un::sun_path)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unix:", text, ": the path of a socket has at most ",
                       sizeof(sockaddr_un::sun_path) - 1, " bytes"));
    }
    return address;
  }
  std::optional<TcpAddress> tcp = ParseTcpAddress(text);
  if (!tcp) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is neither unix:PATH nor HOST:PORT"));
  }
  address.tcp = *std::move(tcp);
  return address;
}

absl::Status ProbeTcp(const TcpAddress& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  int rc = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (rc != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot listen on ", address.text(), ": ", gai_strerror(rc)));
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int yes = 1;
    if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (!fd || bind(fd.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        listen(fd.get(), 1) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot listen on ", address.text()));
    }
  }
  return absl::OkStatus();
}

}  // namespace lull::collector
