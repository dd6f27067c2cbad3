// What steps say, in words that answers share.
#pragma once

#include <cstdint>
#include <string>

#include "query.pb.h"

namespace lull {

// Whether a job hangs, or has begun something that takes longer than its steps: no step
// has ended for five seconds, and for five steps' time. False where steps are not
// known.
bool IsLongWithoutAStep(uint64_t since_step_ns, uint64_t step_ns);
bool IsLongWithoutAStep(const v1::Job& job);

// "no step has ended for 29.8 s; one takes 102 ms".
std::string NoStepWords(uint64_t since_step_ns, uint64_t step_ns);

}  // namespace lull
