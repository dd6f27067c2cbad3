// The answer about a made-up fleet.
#pragma once

#include "fleet.pb.h"

namespace lull::testing {

v1::FleetReply FixedFleet();

}  // namespace lull::testing
