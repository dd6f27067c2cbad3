// The text that lulld tells Prometheus: runs that go on, and those that ended a little
// while ago. An answer is kept, and made anew only after a rest in proportion to what
// it took: whoever asks, and however often, costs the collector no more than a small
// part of a processor.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/metrics/exposition.h"
#include "daemon/metrics/series.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"

namespace lull::collector {

// Not thread-safe.
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
  absl::StatusOr<std::string> Text();

 private:
  struct Chosen {
    std::vector<std::string> ids;  // that began last, first
    size_t left_out = 0;
  };
  absl::StatusOr<Chosen> ChooseRuns();
  absl::Status Renew();

  storage::Store& store_;
  const query::HasRelay has_relay_;
  const metrics::Bounds bounds_;
  const std::function<absl::Time()> now_;
  metrics::Rising rising_;
  std::string text_;
  absl::Time made_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();  // not before then
};

}  // namespace lull::collector
