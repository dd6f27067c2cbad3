// The series that lulld tells Prometheus and collectors of OTLP: runs that go on, and
// those that ended a little while ago. An answer is kept, and made anew only after a
// rest in proportion to what it took: whoever asks, and however often, costs the
// collector no more than a small part of a processor.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/mutex.h"
#include "daemon/metrics/exposition.h"
#include "daemon/metrics/series.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"

namespace lull::collector {

// Thread-safe. Who asks while an answer is made waits for it.
class MetricsSource {
 public:
  // So long an answer is told again at least, and so many times as long as it took.
  static constexpr absl::Duration kLeastRest = absl::Seconds(5);
  static constexpr int kTimesRest = 50;
  // A run is told for so long after the last that was stored of it, so that its end is
  // seen by whoever asks every minute.
  static constexpr absl::Duration kKept = absl::Minutes(5);

  // `store` must outlive it. `now`: a clock that is never set.
  MetricsSource(storage::Store& store, query::HasRelay has_relay,
                metrics::Bounds bounds = metrics::Bounds(),
                std::function<absl::Time()> now = SteadyNow);

  // Errors are those of the store as a whole; a run that cannot be read is counted.
  // For Prometheus.
  absl::StatusOr<std::string> Text();
  struct Answer {
    metrics::Exposition samples;
    absl::Time made;  // by CLOCK_REALTIME
  };
  // `last`: made anew whatever the rest; nobody asks again.
  absl::StatusOr<Answer> Samples(bool last = false);

 private:
  struct Chosen {
    std::vector<std::string> ids;  // that began last, first
    size_t left_out = 0;
  };
  absl::StatusOr<Chosen> ChooseRuns();
  absl::Status RenewIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Renew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::Store& store_;
  const query::HasRelay has_relay_;
  const metrics::Bounds bounds_;
  const std::function<absl::Time()> now_;
  Mutex mutex_;
  metrics::Rising rising_ ABSL_GUARDED_BY(mutex_);
  absl::Status renewed_ ABSL_GUARDED_BY(mutex_);
  Answer answer_ ABSL_GUARDED_BY(mutex_);
  std::string text_ ABSL_GUARDED_BY(mutex_);
  absl::Time made_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // not before then
};

}  // namespace lull::collector
