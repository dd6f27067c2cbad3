// Where `lulld --otlp` pushes metrics to: its option, and the variables that every
// exporter of OpenTelemetry obeys.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/tcp_address.h"
#include "daemon/metrics/exposition.h"

namespace lull::collector {

struct OtlpTarget {
  TcpAddress address;
  bool tls = false;
  std::string roots;            // PEM text of the CAs to trust
  metrics::Attributes headers;  // gRPC metadata, in lower case
  metrics::Attributes resource;
  absl::Duration interval = absl::Seconds(15);
  absl::Duration timeout = absl::Seconds(10);

  std::string url() const;
  // What gRPC takes for the address alone; "unix:4317" would be a socket.
  std::string grpc_name() const { return "dns:///" + address.text(); }
};

// The value of a variable; "" where it is not set.
using Environment = std::function<std::string(const char*)>;

// `endpoint`: http://HOST[:PORT] or https://HOST[:PORT]; "": that of
// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, of OTEL_EXPORTER_OTLP_ENDPOINT, or
// http://127.0.0.1:4317. Also obeyed, in the form for metrics first:
// OTEL_EXPORTER_OTLP[_METRICS]_{HEADERS,CERTIFICATE,TIMEOUT,PROTOCOL},
// OTEL_METRIC_EXPORT_INTERVAL, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
// `database`: that of this lulld, by which it is told apart from others of its host
// (service.instance.id).
// Reads the file of certificates. INVALID_ARGUMENT: the endpoint or a variable, by its
// name; NOT_FOUND: no certificates.
absl::StatusOr<OtlpTarget> FindOtlpTarget(absl::string_view endpoint,
                                          const Environment& environment,
                                          const std::string& database);

}  // namespace lull::collector
