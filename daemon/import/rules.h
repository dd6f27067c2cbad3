// Which rules of blame (docs/blame.md) a trace could not feed.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lull::imports {

// `applied`: the keys "gc", "data", "host_wait", "allocator" of what was there.
// Sentences for people.
std::vector<std::string> RulesNotApplied(const std::map<std::string, bool>& applied);

}  // namespace lull::imports
