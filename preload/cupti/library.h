// Finding libcupti in this process, or bringing it in.
#pragma once

#include "preload/abi/segment.h"
#include "preload/cupti/types.h"

namespace lull::cupti {

// Cold; may dlopen. In this order: a copy that is mapped already (of several, the one
// of the major version of the mapped cudart), one beside a mapped CUDA or PyTorch
// library, one on the loader's search path. kReady with *api filled, or why not:
// kNoLibrary, kTooOld, kFailed; kUnused where there is no driver. What was found stays
// loaded for good.
//
// Without libcuda no function of CUPTI may be called: cuptiGetVersion() of 13.2 looks
// for it, fails, and asks itself for the text of the error until the stack ends. It
// does the same with a libcuda that serves no tools (devices.h): then it is
// kFailed. 12.4, 12.8 and 13.3 answer with an error.
abi::CuptiState load_library(Api* api, Result* result);

}  // namespace lull::cupti
