// The page around its data, made of the files in assets/ when lull is built
// (embed.cmake).
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lull {

struct Template {
  absl::Span<const absl::string_view> before;
  absl::Span<const absl::string_view> after;
  size_t bytes;
};
Template FileTemplate();    // of a job or a comparison; asks nobody for anything
Template ServedTemplate();  // of `lull web`: the list of jobs and comparisons, too

}  // namespace lull
