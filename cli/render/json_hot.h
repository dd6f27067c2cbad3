// What samples of threads say, as JSON.
#pragma once

#include "cli/render/json.h"
#include "query.pb.h"

namespace lull {

// The key "doing" of a row of idle time. `of_functions`: lines are those where
// functions begin (ImportInfo).
Json DoingJson(const v1::GapRow& gap, bool of_functions);

}  // namespace lull
