// The clocks of the parts of a job (run_parts.h), by which their times are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/ranks/host_clock.h"
#include "daemon/storage/store.h"

namespace lull::query {

// May be moved, but not copied: the clocks stay where they are.
class PartClocks {
 public:
  PartClocks() = default;
  PartClocks(PartClocks&&) = default;
  PartClocks& operator=(PartClocks&&) = default;

  // FAILED_PRECONDITION, with the host: nobody knows how far two of the clocks are
  // apart.
  static absl::StatusOr<PartClocks> Load(
      storage::StoreReader& reader, const std::vector<const storage::JobRow*>& parts);

  // The same for parts of one clock; nullptr where all parts have the same one.
  const ranks::HostClock* Of(size_t part) const { return of_part_[part]; }

 private:
  using Identity = std::pair<std::string, uint64_t>;  // boot id and time namespace

  std::map<Identity, ranks::HostClock> clocks_;
  std::vector<const ranks::HostClock*> of_part_;
};

// What the clock of a job's host shows now, as near as is known; nullopt: nobody knows.
// CLOCK_REALTIME of two hosts would say it as well, and is set by whoever likes.
absl::StatusOr<std::optional<uint64_t>> HostTimeNow(storage::StoreReader& reader,
                                                    const storage::JobRow& job);

}  // namespace lull::query
