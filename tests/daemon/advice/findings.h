// What the rules find in a report, as a vector for matchers.
#pragma once

#include <vector>

#include "daemon/advice/advice.h"

namespace lull::testing {

inline std::vector<v1::Finding> FindingsOf(const v1::ReportReply& report) {
  v1::Advice advice = WhatToChangeFirst(report);
  return {advice.findings().begin(), advice.findings().end()};
}

}  // namespace lull::testing
