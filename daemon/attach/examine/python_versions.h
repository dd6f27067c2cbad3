// The CPythons whose frames the shim reads (preload/stacks/layouts/): 3.8 to 3.15, with
// a GIL. PyTorch is made for these; what else there is runs without Python stacks.
#pragma once

namespace lull::attach {

inline constexpr int kOldestPythonMinor = 8;
inline constexpr int kNewestPythonMinor = 15;
inline constexpr char kReadablePythons[] = "CPython 3.8 to 3.15 with its GIL";

}  // namespace lull::attach
