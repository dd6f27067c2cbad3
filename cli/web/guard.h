// Who may see what `lull web` serves. Pure: a request's head in, a decision out.
//
// A port of loopback is open to every user of the host, to every page that a browser of
// the host shows, and, by a name that leads to 127.0.0.1 (DNS rebinding), to pages of
// anybody. So nothing is told without a secret, not even that a path is none.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/http/server.h"

namespace lull::web {

class Guard {
 public:
  // Secrets are long and random. Browsers show a cookie to every port of a host, so to
  // servers of other users, too, but only below the cookie's path: all pages are in
  // `folder`, which nobody can guess.
  struct Secrets {
    std::string token;  // of the address that is the way in
    std::string cookie;
    std::string folder;
  };
  static absl::StatusOr<Secrets> NewSecrets();
  explicit Guard(Secrets secrets);

  // 200: serve it, with the path that follows the folder; 303: the way in.
  http::Decision Decide(const http::Request& request) const;

  // The way in, with the secret: for the user alone.
  std::string Address(uint16_t port) const;

 private:
  bool HasCookie(absl::string_view cookies) const;

  const Secrets secrets_;
  const std::string prefix_;  // of paths: "/FOLDER/"
};

// Whether a Host is this machine's own, by whatever port (of a tunnel, for instance).
bool IsLoopbackHost(absl::string_view host);

}  // namespace lull::web
