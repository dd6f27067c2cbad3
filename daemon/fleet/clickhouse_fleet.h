// The answer of `lull fleet` from the tables of a ClickHouse (tables.h), in SQL that
// 18.16 and current releases take.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/fleet/clickhouse.h"
#include "fleet.pb.h"

namespace lull::fleet {

// As summary.h has it from rows, to the nanosecond, where nothing is written meanwhile;
// else what is read of one job may be of two editions. Fills in all but `store`, `url`
// and `damaged_jobs`. OUT_OF_RANGE: TooMuchTime(); DEADLINE_EXCEEDED; else what the
// server says.
absl::Status FleetOf(ClickHouse& server, const v1::FleetRequest& request,
                     absl::Time deadline, v1::FleetReply* reply);

// A text as SQL has it, whatever is in it.
std::string Quoted(absl::string_view text);

}  // namespace lull::fleet
