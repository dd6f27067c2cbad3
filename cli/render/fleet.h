// The answer of `lull fleet`: what all jobs cost together.
#pragma once

#include <string>

#include "cli/render/json.h"
#include "fleet.pb.h"

namespace lull {

// `asked`: the request in words, "that ran in the last 7d".
std::string FleetText(const v1::FleetReply& reply, const v1::FleetRequest& request,
                      const std::string& asked);
Json FleetJson(const v1::FleetReply& reply, const v1::FleetRequest& request);

namespace schema {

Json Fleet();  // of what FleetJson() makes

}  // namespace schema
}  // namespace lull
