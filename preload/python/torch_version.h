// Which PyTorch the program has imported.
#pragma once

#include "preload/python/api.h"

namespace lull {

struct TorchVersion {
  int major;  // 0: not known
  int minor;
};

// The version in sys.modules["torch"].__version__. Call it with the GIL and without a
// set exception; it leaves none set.
TorchVersion torch_version(const PythonApi* api, PyObject* torch);

// Pure: {2, 9} of "2.9.1+cu128".
TorchVersion parse_torch_version(const char* text);

}  // namespace lull
