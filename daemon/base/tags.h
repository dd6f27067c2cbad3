// The tags of jobs: words that people group their runs by.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace lull {

inline constexpr size_t kMaxTagBytes = 64;
inline constexpr int kMaxTags = 32;  // of a job

// No comma and no blank: lists of jobs have commas, and what begins with "-" would be
// taken for an option.
bool IsTag(std::string_view text);

// Whether a job may have all of them.
bool AreTags(const auto& list) {
  return list.size() <= kMaxTags && std::all_of(list.begin(), list.end(), IsTag);
}

inline constexpr char kTagRule[] =
    "a tag is 1 to 64 letters, digits, and . _ - + = : @ /, and does not begin with -";

}  // namespace lull
