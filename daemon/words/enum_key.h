// An enum's value as programs read it, from its name in the proto: there is no table.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/generated_enum_reflection.h"

namespace lull {

// What is left of a value's name without what all values of its enum begin with, in
// lower case; `unknown` where there is no such value: the collector is newer.
std::string KeyOf(const google::protobuf::EnumDescriptor& words, int value,
                  absl::string_view unknown);

// "warm_up" of TRACING_STATE_WARM_UP.
template <typename Enum>
std::string KeyOf(Enum value, absl::string_view unknown = "unknown") {
  return KeyOf(*google::protobuf::GetEnumDescriptor<Enum>(), value, unknown);
}

// The value whose key is `text`.
template <typename Enum>
std::optional<Enum> FromKey(absl::string_view text) {
  const auto& words = *google::protobuf::GetEnumDescriptor<Enum>();
  for (int i = 0; i < words.value_count(); ++i) {
    auto value = static_cast<Enum>(words.value(i)->number());
    if (KeyOf(value) == text) return value;
  }
  return std::nullopt;
}

}  // namespace lull
