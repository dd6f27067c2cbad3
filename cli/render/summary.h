// What `lull run` says at the end of a job, in about ten lines on stderr: how
// long, what the host waited for, what to change first, and what the answer cost.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull {

// colour: with ANSI escapes, for a terminal.
std::string SummaryText(const v1::ReportReply& reply, bool colour);

}  // namespace lull
