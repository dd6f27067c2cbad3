// `lulld --otlp`: tells a collector of OpenTelemetry what Prometheus may ask for.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "daemon/collector/serve/metrics_source.h"
#include "daemon/collector/serve/otlp_target.h"
#include "daemon/metrics/otlp.h"
#include "otlp.grpc.pb.h"

namespace lull::collector {

// All values are absolute: what did not arrive is not sent again, as the next push
// says it all.
class OtlpPush {
 public:
  // Begins after the first interval. `source` must outlive it.
  OtlpPush(OtlpTarget target, MetricsSource& source);
  // Pushes once more, for a second at most: the end of a run is not to be missed.
  ~OtlpPush();
  OtlpPush(const OtlpPush&) = delete;
  OtlpPush& operator=(const OtlpPush&) = delete;

 private:
  void Run();
  bool IsEnding();
  absl::Status Push(bool last);
  // What of it was not taken.
  absl::StatusOr<metrics::otlp::ExportMetricsPartialSuccess> Send(
      const metrics::otlp::ExportMetricsServiceRequest& request, absl::Time deadline,
      bool last);
  void Tell(const absl::Status& pushed);

  const OtlpTarget target_;
  MetricsSource& source_;
  // The thread's own.
  // Null after each call that failed: a connection may be dead without a word, and a
  // channel that was refused has calls fail for up to two minutes.
  std::unique_ptr<metrics::otlp::MetricsService::Stub> receiver_;
  absl::Time sent_ = absl::InfinitePast();  // the answer that arrived last
  absl::Status told_;                       // in the log; OK: all is well

  Mutex mutex_;
  std::condition_variable ended_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace lull::collector
