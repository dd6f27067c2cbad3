// The answers of `lull ps`, for people and as JSON. Pure.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cli/render/json.h"
#include "daemon/attach/examine/examination.h"

namespace lull {

// A line for each process; below, what to do about those that cannot be attached to,
// once for each kind. `hidden` helpers and workers are counted only. Commands are cut
// so that lines have `columns` at most; 0 = not cut.
std::string PsText(const std::vector<attach::Examination>& processes, size_t hidden,
                   size_t columns);
Json PsJson(const std::vector<attach::Examination>& processes);

// One process in full. `workers`: what FindWorkers() says of it.
std::string ProcessText(const attach::Examination& examination,
                        const std::vector<pid_t>& workers);
Json ProcessJson(const attach::Examination& examination,
                 const std::vector<pid_t>& workers);

}  // namespace lull
