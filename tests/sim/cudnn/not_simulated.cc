#include "tests/sim/cudnn/not_simulated.h"

#include "tests/sim/cudnn/api.h"

// Declared without parameters: none is looked at.
#define X(name) \
  SIM_EXPORT int name() { return ::lull::sim::kCudnnNotSupported; }
SIM_CUDNN_NOT_SIMULATED(X)
#undef X
