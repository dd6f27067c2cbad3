// What the fuzz target of exports of Nsight Systems and its replay share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lull::imports {

// Reads `input` as a database, and translates what comes of it; aborts where the
// collector would refuse that.
void FuzzNsys(std::string_view input);

// Databases with every table that is read, of two schemas.
std::vector<std::string> NsysSeeds();

}  // namespace lull::imports
