#include "daemon/words/enum_key.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "google/protobuf/descriptor.h"

namespace lull {
namespace {

// "TRACING_STATE_": up to the last word on which all of them agree.
size_t PrefixOf(const google::protobuf::EnumDescriptor& words) {
  absl::string_view first = words.value(0)->name();
  size_t same = first.size();
  for (int i = 1; i < words.value_count(); ++i) {
    absl::string_view name = words.value(i)->name();
    auto end =
        std::mismatch(first.begin(), first.end(), name.begin(), name.end()).first;
    same = std::min(same, static_cast<size_t>(end - first.begin()));
  }
  return first.substr(0, same).rfind('_') + 1;
}

}  // namespace

std::string KeyOf(const google::protobuf::EnumDescriptor& words, int value,
                  absl::string_view unknown) {
  const auto* known = words.FindValueByNumber(value);
  if (known == nullptr) return std::string(unknown);
  return absl::AsciiStrToLower(
      absl::string_view(known->name()).substr(PrefixOf(words)));
}

}  // namespace lull
