// The answer of `lull doctor`, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/check.h"
#include "cli/render/json.h"

namespace lull {

std::string DoctorText(const std::vector<Check>& checks);
Json DoctorJson(const std::vector<Check>& checks);

}  // namespace lull
