// JSON as scripts see it.
#pragma once

#include <string>
#include <vector>

#include "cli/render/json.h"

namespace lull::testing {

inline std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

// Written out and read back, as a script would.
inline Json Parsed(const Json& json) { return Json::parse(JsonText(json)); }

}  // namespace lull::testing
