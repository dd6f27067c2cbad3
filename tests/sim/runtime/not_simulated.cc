#include "tests/sim/runtime/not_simulated.h"

#include "tests/sim/runtime/api.h"

// Declared without parameters: none is looked at.
#define X(name)                                   \
  SIM_EXPORT int name() {                         \
    SIM_CALL();                                   \
    return call.done(::lull::sim::kNotSupported); \
  }
SIM_NOT_SIMULATED(X)
#if LULL_SIM_CUDART >= 13
SIM_NOT_SIMULATED_13(X)
#else
SIM_NOT_SIMULATED_12(X)
#endif
#undef X
