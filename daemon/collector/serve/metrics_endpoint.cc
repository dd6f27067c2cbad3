#include "daemon/collector/serve/metrics_endpoint.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/base/thread.h"
#include "daemon/base/tokens.h"

namespace lull::collector {
namespace {

constexpr absl::string_view kBearerScheme = "Bearer ";

http::Decision RefuseScrape(int status, const char* body) {
  http::Decision decision;
  decision.status = status;
  decision.body = body;
  return decision;
}

bool HasToken(absl::string_view authorization, const std::string& token) {
  if (token.empty() || !absl::StartsWithIgnoreCase(authorization, kBearerScheme)) {
    return false;
  }
  authorization.remove_prefix(kBearerScheme.size());
  return SameSecret({authorization.data(), authorization.size()}, token);
}

http::Answer AnswerOf(absl::StatusOr<std::string> text) {
  http::Answer answer;
  if (text.ok()) {
    answer.type = metrics::kContentType;
    answer.body = *std::move(text);
  } else {
    answer.status = 503;
    answer.body = absl::StrCat(text.status().message(), "\n");
  }
  return answer;
}

}  // namespace

absl::StatusOr<TcpAddress> ParseMetricsAddress(absl::string_view text) {
  const bool port_alone = std::all_of(text.begin(), text.end(),
                                      [](char c) { return absl::ascii_isdigit(c); });
  std::string whole(text);
  if (text.empty()) {
    whole = absl::StrCat(kMetricsHost, ":", kMetricsPort);
  } else if (port_alone) {
    whole = absl::StrCat(kMetricsHost, ":", text);
  }
  std::optional<TcpAddress> address = ParseTcpAddress(whole);
  if (!address) address = ParseTcpAddress(absl::StrCat(whole, ":", kMetricsPort));
  if (!address) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics ", text, " is none of PORT, ADDR and ADDR:PORT"));
  }
  return *std::move(address);
}

http::Decision AdmitScrape(const http::Request& request, const std::string& token) {
  if (!HasToken(request.authorization, token) || !request.has_one_of_each) {
    http::Decision decision = RefuseScrape(
        401,
        "This wants the collector's read token, as \"Authorization: Bearer TOKEN\".\n");
    decision.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"lulld\"");
    return decision;
  }
  if (request.method != "GET") {
    http::Decision decision = RefuseScrape(405, "");
    decision.headers.emplace_back("Allow", "GET");
    return decision;
  }
  if (request.has_body) return RefuseScrape(400, "");
  const absl::string_view target = request.target;
  if (target.substr(0, target.find('?')) != "/metrics") {
    return RefuseScrape(404, "Metrics are at /metrics.\n");
  }
  http::Decision decision;
  decision.status = 200;
  decision.path = "metrics";
  return decision;
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    const TcpAddress& address, const std::string& token, MetricsSource& source) {
  std::unique_ptr<MetricsEndpoint> endpoint(new MetricsEndpoint);
  http::ServerOptions options;
  options.address = address.host;
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address.port, &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(address.port, " is no port"));
  }
  options.port = static_cast<uint16_t>(port);
  LULL_ASSIGN_OR_RETURN(
      endpoint->server_,
      http::Server::Listen(
          options,
          [token](const http::Request& request) { return AdmitScrape(request, token); },
          [&source](const std::string&, const std::string&) {
            return AnswerOf(source.Text());
          }));
  endpoint->address_ =
      TcpAddress{address.host, absl::StrCat(endpoint->server_->port())}.text();
  endpoint->thread_ =
      StartThread([server = endpoint->server_.get()] { server->Run(); });
  return endpoint;
}

MetricsEndpoint::~MetricsEndpoint() {
  if (server_ != nullptr) server_->Stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace lull::collector
