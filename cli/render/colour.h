// Colour for a text that was rendered without.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lull {

// The first line (the job) and the headlines of tables bold, lost events yellow. A
// headline is a line at the margin with an indented one below it.
std::string Coloured(absl::string_view text);

// Lines of a message in which names of jobs and hosts may stand: those are others'
// words, and no orders to a terminal.
std::string WithoutOrders(absl::string_view text);

}  // namespace lull
