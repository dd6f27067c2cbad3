// Samples of PyTorch's autograd threads, which run no Python: each is charged to the
// line whose operator runs backward then (engine_samples.h).
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/aggregate/event.h"
#include "daemon/collector/ingest/engine_samples.h"
#include "daemon/collector/ingest/series_table.h"

namespace lull::collector {

class AutogradFeed {
 public:
  explicit AutogradFeed(SeriesTable& series) : series_(series) {}

  void Restore(uint64_t judged_ns) { samples_.Restore(judged_ns); }
  // Takes any event of the process, and leaves out what is of no use here.
  void Add(const Event& event);
  // Samples whose line is known by now, as events of their own.
  std::vector<Event> Advance(uint64_t judged_ns);

 private:
  SeriesTable& series_;
  EngineSamples samples_;
  std::vector<uint32_t> callers_;  // of backward(), by series: + 1; 0: not asked yet
};

}  // namespace lull::collector
