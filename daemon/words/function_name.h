// A C++ function as a reader needs it: which, not with what parameters.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lull {

// Leaves out return type, parameters, "(anonymous namespace)::" and long arguments of
// templates: "(anonymous namespace)::step(float*, CUstream_st*)" is "step", "void
// fill<float>(float*, float)" is "fill<float>". A lambda is named by where it stands,
// "main::{lambda#1}", also where only std::function's own function is known. Names of
// other languages ("Trainer.step", "<module>") are as they were.
std::string ShortFunction(absl::string_view function);

}  // namespace lull
