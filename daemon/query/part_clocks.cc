#include "daemon/query/part_clocks.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock_bound.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

using Identity = std::pair<std::string, uint64_t>;

struct Readings {
  std::string host;  // of one of the parts
  std::map<Identity, std::vector<ClockBound>> by_reference;
};

// The clock that was read beside most of the others.
Identity ReferenceOf(const std::map<Identity, Readings>& all) {
  std::map<Identity, size_t> votes;
  for (const auto& [identity, readings] : all) {
    ++votes[identity];
    for (const auto& [reference, bounds] : readings.by_reference) {
      if (reference != identity) ++votes[reference];
    }
  }
  return std::max_element(
             votes.begin(), votes.end(),
             [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

absl::Status Unknown(const std::string& host, const char* why) {
  return absl::FailedPreconditionError(
      absl::StrCat("nobody knows how far the clock of ", host,
                   " is from those of the other hosts: ", why));
}

}  // namespace

absl::StatusOr<PartClocks> PartClocks::Load(
    storage::StoreReader& reader, const std::vector<const storage::JobRow*>& parts) {
  std::map<Identity, Readings> all;
  for (const storage::JobRow* part : parts) {
    if (part->info.boot_id().empty()) {
      return Unknown(part->info.host(), "its kernel does not say which one it is");
    }
    Readings& readings = all[{part->info.boot_id(), part->info.time_namespace()}];
    readings.host = part->info.host();
    LULL_ASSIGN_OR_RETURN(auto rows,
                          reader.catalogue().All<storage::ClockReadingRow>(part->id));
    for (const storage::ClockReadingRow& row : rows) {
      const lull::v1::ClockReading& one = row.reading;
      readings.by_reference[{one.boot_id(), one.time_namespace()}].push_back(
          {one.at_ns(), one.low_ns(), one.high_ns()});
    }
  }
  PartClocks clocks;
  clocks.of_part_.resize(parts.size());
  if (all.size() == 1) return clocks;
  const Identity reference = ReferenceOf(all);
  for (auto& [identity, readings] : all) {
    std::optional<ranks::HostClock> clock = ranks::HostClock();
    if (identity != reference) {
      std::vector<ClockBound>& bounds = readings.by_reference[reference];
      if (bounds.empty()) {
        return Unknown(readings.host,
                       "its relay has not read the collector's clock beside it");
      }
      clock = ranks::HostClock::From(std::move(bounds));
    }
    if (!clock) {
      return Unknown(readings.host,
                     "one of the two stood still or jumped, as when a host sleeps");
    }
    clocks.clocks_.emplace(identity, *std::move(clock));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const lull::v1::JobInfo& info = parts[i]->info;
    clocks.of_part_[i] = &clocks.clocks_.at({info.boot_id(), info.time_namespace()});
  }
  return clocks;
}

}  // namespace lull::query
