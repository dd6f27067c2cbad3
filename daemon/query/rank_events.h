// Which events of a rank are waits for other ranks, and which may make it late.
#pragma once

#include <cstdint>

#include "daemon/aggregate/series.h"
#include "daemon/query/names.h"

namespace lull::query {

bool IsCollective(const aggregate::Series& series);

// A condition of which the native stack is not known, that of a collective perhaps: the
// overhead budget takes stacks away, and an older shim took none.
bool MayBeACollective(const aggregate::Series& series, Names& names);

// What a thread was in for at least so long that it may explain a late rank; "" else.
const char* CauseOf(const aggregate::Series& series, uint64_t duration_ns);

}  // namespace lull::query
