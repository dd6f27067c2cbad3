// How much memory is live over time, from the events that change it. They come in about
// the order of their ends; what changes takes effect where the call says
// (MemoryOrderNs), so changes are held for a while and told in the order of time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/series.h"
#include "daemon/export/trace_writer.h"

namespace lull::exports {

class MemoryLevels {
 public:
  static constexpr uint64_t kHold = 1'000'000'000;
  static constexpr size_t kMostHeld = 1 << 20;

  // What is told: from `since_ns` on, times as in events; `series` outlives this.
  MemoryLevels(const std::vector<aggregate::Series>& series, uint64_t since_ns)
      : series_(series), since_ns_(since_ns) {}

  using Tell = absl::FunctionRef<void(Measure measure, uint32_t device,
                                      uint64_t time_ns, int64_t bytes)>;
  void Add(const aggregate::Event& event, Tell tell);
  void Finish(Tell tell);

 private:
  struct Change {
    uint64_t time_ns = 0;
    uint64_t order = 0;
    int64_t bytes = 0;
    uint32_t total = 0;  // series
    friend bool operator>(const Change& a, const Change& b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.order > b.order;
    }
  };
  void Apply(Tell tell);

  const std::vector<aggregate::Series>& series_;
  const uint64_t since_ns_;
  std::vector<Change> held_;  // a heap
  uint64_t taken_ = 0;
  uint64_t newest_ns_ = 0;
  std::map<uint32_t, int64_t> levels_;
  bool begun_ = false;  // telling
};

}  // namespace lull::exports
