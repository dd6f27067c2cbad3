// Which glibc a process has.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lull::attach {

// "2.31", from the name of the file ("libc-2.31.so") or from the banner in it. `name`
// is the path as the process sees it, `path` that by which we reach it. "" = not known.
std::string ReadGlibcVersion(absl::string_view name, const std::string& path);

// Whether the shim loads there: 2.28 or newer. An unknown version counts as new enough.
bool IsGlibcNewEnough(absl::string_view version);

}  // namespace lull::attach
