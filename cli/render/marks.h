// What `lull tag`, `lull untag`, `lull pin` and `lull unpin` print.
#pragma once

#include <string>

#include "cli/render/json.h"
#include "control.pb.h"

namespace lull {

// A line for each job: "resnet (3f2a1c20): pinned; tags naive, nightly". Where one is
// pinned also how full the database is.
std::string MarkedText(const v1::MarkReply& reply);
Json MarkedJson(const v1::MarkReply& reply);

}  // namespace lull
