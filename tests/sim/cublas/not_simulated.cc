#include "tests/sim/cublas/not_simulated.h"

#include "tests/sim/cublas/api.h"

// Declared without parameters: none is looked at.
#define X(name) \
  SIM_EXPORT int name() { return ::lull::sim::kCublasNotSupported; }
SIM_CUBLAS_NOT_SIMULATED(X)
#undef X
