// From a report to "what should I change first": findings that the numbers prove,
// each with a concrete change. Every finding has its evidence in the report. The
// rules are in *_rules.cc, their thresholds in thresholds.h.
//
// With GPU truth all findings are about time of the GPU within traced time, because
// that is what a change wins. Without it they are about time of the host.
#pragma once

#include "query.pb.h"

namespace lull {

v1::Shares SharesOf(const v1::ReportReply& report);

// `report` has all sections and gpu.verdict. The verdict and the first finding never
// contradict each other: findings about what the verdict names come first, but for
// those that win less than half of what another one does.
v1::Advice WhatToChangeFirst(const v1::ReportReply& report);

}  // namespace lull
