#include "cli/web/guard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"
#include "daemon/base/tokens.h"

namespace lull::web {
namespace {

using http::Decision;

constexpr absl::string_view kCookieName = "lull=";
constexpr char kRefusal[] =
    "Paste the address that lull web printed into the browser; it holds a token.\n";

Decision Refuse(int status) {
  Decision decision;
  decision.status = status;
  if (status == 403) decision.body = kRefusal;
  if (status == 405) decision.headers.emplace_back("Allow", "GET, HEAD");
  return decision;
}

}  // namespace

bool IsLoopbackHost(absl::string_view host) {
  for (absl::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    absl::string_view rest = host;
    if (!absl::ConsumePrefix(&rest, name)) continue;
    if (rest.empty()) return true;
    return absl::ConsumePrefix(&rest, ":") && !rest.empty() && rest.size() <= 5 &&
           std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit);
  }
  return false;
}

absl::StatusOr<Guard::Secrets> Guard::NewSecrets() {
  Secrets secrets;
  LULL_ASSIGN_OR_RETURN(secrets.token, RandomToken());
  LULL_ASSIGN_OR_RETURN(secrets.cookie, RandomToken());
  LULL_ASSIGN_OR_RETURN(secrets.folder, RandomToken());
  return secrets;
}

Guard::Guard(Secrets secrets)
    : secrets_(std::move(secrets)), prefix_(absl::StrCat("/", secrets_.folder, "/")) {}

std::string Guard::Address(uint16_t port) const {
  return absl::StrCat("http://127.0.0.1:", port, "/?token=", secrets_.token);
}

bool Guard::HasCookie(absl::string_view cookies) const {
  bool has = false;
  for (absl::string_view one : absl::StrSplit(cookies, ';')) {
    one = absl::StripAsciiWhitespace(one);
    if (!absl::ConsumePrefix(&one, kCookieName)) continue;
    has |= SameSecret({one.data(), one.size()}, secrets_.cookie);
  }
  return has;
}

Decision Guard::Decide(const http::Request& request) const {
  if (!request.has_one_of_each || !IsLoopbackHost(request.host)) return Refuse(403);
  if (!request.origin.empty() &&
      request.origin != absl::StrCat("http://", request.host)) {
    return Refuse(403);
  }
  // Browsers say who asks: this page itself, or the user.
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
      request.fetch_site != "none") {
    return Refuse(403);
  }
  if (request.method != "GET" && request.method != "HEAD") return Refuse(405);
  if (request.has_body) return Refuse(400);
  std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(request.target, absl::MaxSplits('?', 1));
  absl::string_view token = target.second;
  absl::string_view path = target.first;
  if (path == "/" && absl::ConsumePrefix(&token, "token=") &&
      SameSecret({token.data(), token.size()}, secrets_.token)) {
    Decision decision = Refuse(303);
    decision.headers = {
        {"Set-Cookie", absl::StrCat(kCookieName, secrets_.cookie,
                                    "; HttpOnly; SameSite=Strict; Path=", prefix_)},
        {"Location", prefix_}};
    return decision;
  }
  if (!HasCookie(request.cookies) || !absl::ConsumePrefix(&path, prefix_)) {
    return Refuse(403);
  }
  Decision decision;
  decision.status = 200;
  decision.path = std::string(path);
  decision.query = std::string(target.second);
  return decision;
}

}  // namespace lull::web
