// Intervals of shares that were sampled, where looks were late.
//
// A sampler that gets its processor late sees what came later. Chance does not make that
// good: on a full machine it looks when the program sleeps. Each such look may belong to
// another line, so an interval is wider by all that may be so: of looks of which the part
// `late` was late, a share p may be too high by late * p, and too low by late * (1 - p).
#pragma once

#include "absl/status/status.h"
#include "daemon/query/sections.h"

namespace lull::query {

// All intervals of `reply`, once it is filled.
absl::Status WidenForLateLooks(const View& view, v1::ReportReply* reply);

// The same for a known part, for tests.
void WidenForLateLooks(double late, google::protobuf::Message* message);

}  // namespace lull::query
