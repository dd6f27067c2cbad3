// A job's command in a few characters: those that distinguish it from other jobs.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lull {

// `command` is as job_info.h writes it, quoted as for a shell. The program is shortened
// to its base name. Options of a Python interpreter before the script are left out. A
// script is shortened to its base name if its path is absolute or there is no room.
// What is still longer than `width` bytes is cut. Control characters become '?'.
//
//   /venv/bin/python -W ignore::UserWarning -u train.py --workers 1
//   python train.py --workers 1
std::string ShortCommand(absl::string_view command, size_t width);

}  // namespace lull
