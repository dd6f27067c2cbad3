// Which build of lull this is.
#pragma once

#include <string>

namespace lull {

// What `program --version` prints, without a newline at the end: name and version, then
// commit, compiler, machine, type of build and versions of what is linked in, a line
// each.
std::string VersionText(const std::string& program);

}  // namespace lull
