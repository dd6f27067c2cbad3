// Which jobs `lull fleet` is asked about.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fleet.pb.h"

namespace lull {

struct FleetJobs {
  std::string since = "7d";  // how long ago they ended at most; "all"
  std::string until;         // and at least; "": now
  std::string by = "user";
  std::string name;  // "": any, and so on
  std::string user;
  std::string host;
  std::vector<std::string> tags;  // all of them
  uint32_t top = 10;              // rows of each list
};

// INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<v1::FleetRequest> FleetRequestOf(const FleetJobs& jobs);

// FAILED_PRECONDITION: the collector is older, and added up by something else.
absl::Status CheckGroups(const v1::FleetRequest& request, const v1::FleetReply& reply);

// "of user ada, tagged nightly, that ran in the last 7d"
std::string FleetWords(const FleetJobs& jobs);

}  // namespace lull
