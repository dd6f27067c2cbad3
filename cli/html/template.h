// The page around its data, made of the files in assets/ when lull is built
// (embed.cmake).
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lull {

absl::Span<const absl::string_view> BeforeData();
absl::Span<const absl::string_view> AfterData();
size_t TemplateBytes();

}  // namespace lull
