// A job's command in a few characters: by what tells it from other jobs.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lull {

// `command` is as job_info.h writes it, quoted as for a shell. The program is by its
// base name; of a Python interpreter, the options before the script are left out; a
// script is by its base name where it has a whole path or no room. What is still longer
// than `width` bytes loses its end. Control characters become '?'.
//
//   /venv/bin/python -W ignore::UserWarning -u train.py --workers 1
//   python train.py --workers 1
std::string ShortCommand(absl::string_view command, size_t width);

}  // namespace lull
