// Who may see what `lull web` serves. Pure: a request's head in, a decision out.
//
// A port of loopback is open to every user of the host, to every page that a browser of
// the host shows, and, by a name that leads to 127.0.0.1 (DNS rebinding), to pages of
// anybody. So nothing is told without a secret, not even that a path is none.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lull::web {

struct Request {
  std::string method;
  std::string target;  // "/job/3f9a?x=y"
  std::string host;
  std::string origin;
  std::string fetch_site;  // Sec-Fetch-Site
  std::string cookies;
  bool has_body = false;
  bool has_one_of_each = true;  // false: one of these headers came twice
};

struct Decision {
  int status = 0;          // of the answer; 200: serve it, 303: the way in
  std::string path;        // of 200, without what all have in common: "job/3f9a"
  std::string query;       // what follows the '?'
  std::string set_cookie;  // of 303
  std::string location;
};

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
  Guard(Secrets secrets, int port);

  Decision Decide(const Request& request) const;

  // The way in.
  std::string Address() const;

 private:
  bool HasCookie(absl::string_view cookies) const;

  const Secrets secrets_;
  const std::string prefix_;  // of paths: "/FOLDER/"
  const int port_;
};

// Whether a Host is this machine's own, by whatever port (of a tunnel, for instance).
bool IsLoopbackHost(absl::string_view host);

}  // namespace lull::web
