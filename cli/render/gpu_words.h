// Names of what GPU truth is about: as keys for programs, as words for people.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull {

// "unknown" of a cause that is not known: the collector is newer.
std::string CauseKey(v1::GapCause cause);            // "data"
std::string CauseName(v1::GapCause cause);           // "data", "GC pause"
std::string VerdictText(absl::string_view verdict);  // "data-bound"; "" of ""

// "12.4" of cuptiGetVersion()'s number; "" of 0.
std::string CudaVersionOfCupti(uint32_t version);

}  // namespace lull
