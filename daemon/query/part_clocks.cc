#include "daemon/query/part_clocks.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/clock_bound.h"
#include "daemon/base/clock_identity.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

// Five weeks of what a relay reads; of a longer job the clocks at its start are known
// less exactly. One that reads without end must not cost the collector its memory.
constexpr uint64_t kMostReadings = 300'000;

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

Identity IdentityOf(const v1::JobInfo& job) {
  return {job.boot_id(), job.time_namespace()};
}

absl::Status AddReadings(storage::StoreReader& reader, const storage::JobRow& job,
                         Readings* out) {
  LULL_ASSIGN_OR_RETURN(auto rows,
                        reader.catalogue().ClockReadings(job.id, kMostReadings));
  for (const storage::ClockReadingRow& row : rows) {
    const v1::ClockReading& one = row.reading;
    out->by_reference[{one.boot_id(), one.time_namespace()}].push_back(
        {one.at_ns(), one.low_ns(), one.high_ns()});
  }
  return absl::OkStatus();
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
    Readings& readings = all[IdentityOf(part->info)];
    readings.host = part->info.host();
    LULL_RETURN_IF_ERROR(AddReadings(reader, *part, &readings));
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
    clocks.of_part_[i] = &clocks.clocks_.at(IdentityOf(parts[i]->info));
  }
  return clocks;
}

absl::StatusOr<std::optional<uint64_t>> HostTimeNow(storage::StoreReader& reader,
                                                    const storage::JobRow& job) {
  const Identity own = {OwnClock().boot_id, OwnClock().time_namespace};
  if (own.first.empty() || job.info.has_imported()) return std::nullopt;
  if (IdentityOf(job.info) == own) return MonotonicNs();
  Readings readings;
  LULL_RETURN_IF_ERROR(AddReadings(reader, job, &readings));
  const auto clock = ranks::HostClock::From(std::move(readings.by_reference[own]));
  if (!clock) return std::nullopt;
  return clock->FromCommon(ranks::HostClock().ToCommon(MonotonicNs()));
}

}  // namespace lull::query
