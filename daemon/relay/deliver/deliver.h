// Spools that an earlier relay could not deliver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/connection/collector_address.h"

namespace lull::relay {

struct DeliverOptions {
  CollectorAddress collector;
  absl::Duration timeout = absl::Seconds(30);
};

// Sends what lies in the spool `directory` to the collector, and removes the
// directory once all of it is acknowledged. Ends the job in the name of its relay
// (exit status unknown) when the relay did not live to do so. UNAVAILABLE when a
// live relay owns the spool. Uses gRPC: call it in a process that forks no more,
// or in a child made for it.
absl::Status DeliverSpool(const std::string& directory, const DeliverOptions& options);

// The spool directories under `parent` that no live relay owns, oldest first.
std::vector<std::string> FindLeftoverSpools(const std::string& parent);

// All leftovers of one place together take no more than this.
inline constexpr uint64_t kMaxLeftoverBytes = uint64_t{1} << 30;
// Removes the oldest leftovers beyond `limit`. Reports of their jobs then say that
// nobody saw how they ended.
void TidySpools(const std::string& parent, uint64_t limit = kMaxLeftoverBytes);

}  // namespace lull::relay
