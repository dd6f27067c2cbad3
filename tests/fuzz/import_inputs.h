// What an import makes of arbitrary bytes: an error, or batches that the collector
// takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lull::imports {

// Ends the program where the collector would refuse a batch.
void FuzzImport(std::string_view input);

// Well-formed traces to start from, plain and gzip.
std::vector<std::string> ImportSeeds();

}  // namespace lull::imports
