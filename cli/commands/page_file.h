// A page on its way to a file.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lull {

// Into `path`, "-" for stdout. What was there stays as it is until all of the page is
// written, and then is replaced at once; a pipe or a device is written to.
absl::Status WritePage(const std::string& path, absl::string_view page);

}  // namespace lull
