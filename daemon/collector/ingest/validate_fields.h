// What the checks of messages have in common: single fields.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "ingest.pb.h"

namespace lull::collector {

inline constexpr uint64_t kMaxTimeNs = kMaxWireTotal;
inline constexpr uint32_t kMaxApiId = 65535;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

inline absl::Status CheckText(absl::string_view field, const std::string& text) {
  if (text.size() <= kMaxWireString) return absl::OkStatus();
  return Invalid(field, " has ", text.size(), " bytes, more than ", kMaxWireString);
}

inline absl::Status CheckTime(absl::string_view field, uint64_t time) {
  return time <= kMaxTimeNs ? absl::OkStatus() : Invalid(field, " is out of range");
}

inline absl::Status CheckApi(absl::string_view field, const lull::v1::ApiName& api) {
  if (api.id() == 0 || api.id() > kMaxApiId) {
    return Invalid(field, ".id is ", api.id(), ", which is out of range");
  }
  LULL_RETURN_IF_ERROR(CheckText(absl::StrCat(field, ".name"), api.name()));
  return CheckText(absl::StrCat(field, ".family"), api.family());
}

}  // namespace lull::collector
