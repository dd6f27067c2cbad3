// Names of what GPU truth is about: as keys for programs, as words for people.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/words/cause_words.h"

namespace lull {

std::string VerdictText(absl::string_view verdict);  // "data-bound"; "" of ""

// "12.4" for a number of cuptiGetVersion(); "" for 0.
std::string CudaVersionOfCupti(uint32_t version);

}  // namespace lull
