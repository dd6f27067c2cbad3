// The collector as a whole: store, committer, services, server. Used by lulld and,
// in one process, by tests.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/tcp_address.h"
#include "daemon/base/tokens.h"
#include "daemon/collector/ingest/committer.h"
#include "daemon/collector/serve/fleet_push.h"
#include "daemon/collector/serve/listen_address.h"
#include "daemon/collector/serve/otlp_target.h"

namespace lull::collector {

struct CollectorConfig {
  ListenAddress listen;
  std::string database;
  Tokens tokens;         // over TCP at least one
  std::string tls_cert;  // PEM text; "" = no TLS
  std::string tls_key;
  CommitterOptions committer;
  // Where Prometheus may ask, by its number, and the token that it needs; absent:
  // nowhere.
  std::optional<TcpAddress> metrics;
  std::string metrics_token;
  std::optional<OtlpTarget> otlp;    // where metrics are pushed to; absent: nowhere
  std::optional<FleetTarget> fleet;  // where totals of jobs are kept; absent: nowhere
  // Whoever has an export under way and reads nothing of it for so long is cut off.
  absl::Duration export_patience = absl::Minutes(1);
};

class Collector {
 public:
  // Errors name what is in the way: the port, the socket, the database, tokens that are
  // missing.
  static absl::StatusOr<std::unique_ptr<Collector>> Start(CollectorConfig config);
  ~Collector();  // as Stop

  // "unix:/path" or "host:port" with the port that it got (for port 0).
  const std::string& address() const { return address_; }
  // The same of where Prometheus may ask; "": nowhere.
  std::string metrics_address() const;

  // Somebody asked for a shutdown, or nobody can reach us any more
  // (UnixListener::superseded).
  bool shutdown_requested() const;
  absl::Duration IdleTime() const;

  // No new calls, no more metrics; streams are cut, what they sent is committed.
  void Stop();

 private:
  struct Parts;
  Collector() = default;

  std::string address_;
  std::atomic<bool> shutdown_requested_{false};
  std::unique_ptr<Parts> parts_;
};

}  // namespace lull::collector
