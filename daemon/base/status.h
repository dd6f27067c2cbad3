// absl::Status from errno, and the two macros that every caller would otherwise
// write by hand.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lull {

// "WHAT: STRERROR", under the code that fits `error`.
absl::Status ErrnoStatus(int error, std::string_view what);

// The same code with `context` and ": " in front of the message.
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace lull

#define LULL_RETURN_IF_ERROR(expression)       \
  do {                                         \
    absl::Status lull_status = (expression);   \
    if (!lull_status.ok()) return lull_status; \
  } while (false)

#define LULL_CONCAT_INNER(a, b) a##b
#define LULL_CONCAT(a, b) LULL_CONCAT_INNER(a, b)
#define LULL_ASSIGN_OR_RETURN(target, expression)                             \
  LULL_ASSIGN_OR_RETURN_INNER(LULL_CONCAT(lull_status_or_, __LINE__), target, \
                              expression)
#define LULL_ASSIGN_OR_RETURN_INNER(holder, target, expression) \
  auto holder = (expression);                                   \
  if (!holder.ok()) return std::move(holder).status();          \
  target = *std::move(holder)
