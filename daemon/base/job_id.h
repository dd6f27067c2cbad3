// Ids of jobs: 32 hexadecimal digits, drawn at random (cli/job/job_info.cc).
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/strings/string_view.h"

namespace lull {

inline constexpr size_t kJobIdDigits = 32;
inline constexpr size_t kFewestJobIdDigits = 4;  // of a beginning: fewer may be anything

// Whether `text` may be the beginning of an id, or all of it.
inline bool MayBeginJobId(absl::string_view text) {
  return text.size() >= kFewestJobIdDigits && text.size() <= kJobIdDigits &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

inline bool IsJobId(absl::string_view text) {
  return text.size() == kJobIdDigits && MayBeginJobId(text);
}

}  // namespace lull
