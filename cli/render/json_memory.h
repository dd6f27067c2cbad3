// Memory in an answer of its own and, without points and what made up the peaks, in a
// report.
#pragma once

#include "cli/render/json.h"
#include "query.pb.h"

namespace lull {

// "device" is null for the host and where it is not known, "reserved_*" where the
// allocator does not say, "growth" where none was found.
Json MemoryRowsJson(const v1::Memory& reply, bool details);

namespace schema {

Json MemoryRows(bool details);  // of what it prints

}  // namespace schema
}  // namespace lull
