// The same series as OTLP has them: requests of MetricsService.Export. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/metrics/exposition.h"
#include "otlp.pb.h"

namespace lull::metrics {

namespace otlp = opentelemetry::proto::collector::metrics::v1;

// A receiver takes 4 MiB unless it was told otherwise; a point has some 200 bytes.
inline constexpr size_t kPointsOfARequest = 4'000;

// "lull.gpu.idle" and "s" of lull_gpu_idle_seconds_total. Prometheus makes the latter
// of the former, where it receives OTLP, of name, unit and type.
std::string OtlpName(const Family& family);
const char* OtlpUnit(const Family& family);

// `resource`: who tells it. `time_ns`: when the samples were made, Unix time. A counter
// of a run counts from the run's start on, where that is before then.
std::vector<otlp::ExportMetricsServiceRequest> OtlpRequests(const Exposition& samples,
                                                            const Attributes& resource,
                                                            uint64_t time_ns);

}  // namespace lull::metrics
