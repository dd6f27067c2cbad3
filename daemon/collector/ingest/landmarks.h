// The few events of a process that queries want one by one, as rows of their own: when
// tracing changed its state, and the first value that was not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "daemon/aggregate/event.h"
#include "daemon/storage/store.h"

namespace lull::collector {

// Not thread-safe. What is new is held until Flush.
class Landmarks {
 public:
  absl::Status Load(storage::StoreReader& reader, int64_t process);

  // Changes of tracing, before the events of their batch: operations are told apart by
  // them, and may lie in another ring.
  void AddTracing(const storage::TracingRow& row);

  // Keeps `event` if it is another landmark.
  void Add(aggregate::EventType type, const aggregate::Event& event);

  // Whether tracing was on then, by the newest change that is not later.
  bool TracedAt(uint64_t time_ns) const;

  absl::Status Flush(storage::StoreWriter& writer, int64_t process);

 private:
  // A broken shim must not fill the store: it has the first ones. Operations are judged
  // by the latest, of which there are as many to twice as many.
  static constexpr size_t kMaxTracing = storage::kMostTracing;

  struct Step {
    uint64_t number = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  void AddNonFinite(const aggregate::Event& event);

  std::vector<storage::TracingRow> tracing_;  // in the order of time
  std::vector<storage::TracingRow> new_tracing_;
  size_t stored_tracing_ = 0;  // with new_tracing_
  std::optional<storage::NonFiniteRow> non_finite_;
  bool new_non_finite_ = false;
  std::optional<Step> step_;  // the latest
};

}  // namespace lull::collector
