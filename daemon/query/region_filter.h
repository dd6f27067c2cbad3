// Which idle stretches and samples a request is about: all of them, or those in the
// regions of one name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/query/names.h"
#include "daemon/query/sums.h"

namespace lull::query {

class RegionFilter {
 public:
  // `region` empty: all.
  RegionFilter(std::string region, Names& names)
      : region_(std::move(region)), names_(names) {}

  bool all() const { return region_.empty(); }
  // Whether the region with this stack of names has the name, or lies within one that
  // has.
  bool Holds(uint32_t scope_stack);
  bool HoldsAny(const std::vector<ProcessSums>& processes);

  // Calls visit(series, cell) for everything of the type (kIdle, kGapSample or
  // kHostSample), or for its parts in the region: their series are those of the wholes.
  template <typename Visitor>
  void ForEach(const ProcessSums& sums, EventType type, Visitor&& visit) {
    const EventType part =
        type == EventType::kIdle ? EventType::kRegionGap : EventType::kRegionSample;
    for (size_t id = 1; id < sums.series.size(); ++id) {
      const Series& series = sums.series[id];
      if (series.type != (all() ? type : part) || sums.cells[id].empty()) continue;
      if (all()) {
        visit(series, sums.cells[id]);
        continue;
      }
      const uint32_t whole = aggregate::WholeOf(series);
      if (whole >= sums.series.size() || sums.series[whole].type != type) continue;
      if (Holds(series.native_stack)) visit(sums.series[whole], sums.cells[id]);
    }
  }

 private:
  const std::string region_;
  Names& names_;
  absl::flat_hash_map<uint32_t, bool> known_;
};

}  // namespace lull::query
