#include "daemon/base/tags.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace lull {

bool IsTag(std::string_view text) {
  constexpr std::string_view kOthers = "._-+=:@/";
  return !text.empty() && text.size() <= kMaxTagBytes && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [kOthers](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

}  // namespace lull
