// Answers as text that fits in a conversation.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "cli/render/json.h"

namespace lull::mcp {

// On one line, at most `most` bytes. Series (what a list has of every moment) keep
// their last rows, texts of more than 1000 bytes their beginning. If it is still too
// long, stacks keep their innermost frames alone, and then the longest of the
// answer's lists lose their last rows until it fits. A first
// key "cut" then says which lists, and how many rows they had. OUT_OF_RANGE if it
// cannot be made to fit.
absl::StatusOr<std::string> BoundedText(Json answer, size_t most);

}  // namespace lull::mcp
