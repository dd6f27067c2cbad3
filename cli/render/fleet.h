// The answer of `lull fleet`: what all jobs cost together.
#pragma once

#include <string>

#include "cli/render/json.h"
#include "fleet.pb.h"

namespace lull {

// `asked`: which jobs, "that began in the last 7 d".
std::string FleetText(const v1::FleetReply& reply, const std::string& asked);
// `request`: what was asked.
Json FleetJson(const v1::FleetReply& reply, const v1::FleetRequest& request);

namespace schema {

Json Fleet();  // of what FleetJson() makes

}  // namespace schema
}  // namespace lull
