// Colour for a text that was rendered without.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lull {

// The first line (the job) and the headlines of tables bold, lost events yellow. A
// headline is a line at the margin with an indented one below it.
std::string Coloured(absl::string_view text);

}  // namespace lull
