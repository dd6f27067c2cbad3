// What the fuzz target of memory snapshots and its replay share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lull::imports {

// Reads `input` as a snapshot, and translates what comes of it; aborts where the
// collector would refuse that.
void FuzzSnapshot(std::string_view input);

// Snapshots with every field that is read, of three versions of PyTorch, and a pickle
// that would call something.
std::vector<std::string> SnapshotSeeds();

}  // namespace lull::imports
