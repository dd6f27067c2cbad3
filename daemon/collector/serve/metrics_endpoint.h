// `lulld --metrics`: a port of its own for Prometheus, which reads and nothing else.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/tcp_address.h"
#include "daemon/collector/serve/metrics_source.h"
#include "daemon/http/server.h"

namespace lull::collector {

// Where `lulld --metrics` listens unless it is told.
inline constexpr char kMetricsHost[] = "127.0.0.1";
inline constexpr char kMetricsPort[] = "5855";

// What --metrics may be given: "", "PORT", "ADDR" or "ADDR:PORT". INVALID_ARGUMENT for
// anything else.
absl::StatusOr<TcpAddress> ParseMetricsAddress(absl::string_view text);

// 200 for `GET /metrics` with "Authorization: Bearer `token`", whatever follows a '?'.
// Who has not the token learns nothing else.
http::Decision AdmitScrape(const http::Request& request, const std::string& token);

class MetricsEndpoint {
 public:
  // `address`: by its number. `source` must outlive it. UNAVAILABLE: the port is not to
  // be had.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const TcpAddress& address, const std::string& token, MetricsSource& source);
  // Waits for an answer that is being made; others are cut off.
  ~MetricsEndpoint();

  // "127.0.0.1:5855", with the port that it got (for port 0).
  const std::string& address() const { return address_; }

 private:
  MetricsEndpoint() = default;

  std::string address_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

}  // namespace lull::collector
