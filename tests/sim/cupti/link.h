// How the simulated CUPTI reaches the simulated driver: by dlopen, as the real one
// does. It never initialises it.
#pragma once

#include <cstdint>

#include "tests/sim/engine/observer.h"

namespace lull::sim::cupti {

struct Driver {
  int (*add_observer)(const Observer*);
  void (*remove_observer)(const Observer*);
  int64_t (*clock_step_ns)();
  int64_t (*stays_ns)();
  uint64_t (*newest_id)();
  void (*wait_for_devices)();
  int (*device_count)();
  int (*context_id)(const void*, uint32_t*, uint32_t*);
  int (*stream_id)(const void*, const void*, int, uint32_t*);
  int (*context_at)(int, uint32_t*, uint32_t*);
};

// Null without a simulated libcuda.so.1.
const Driver* load_driver();

}  // namespace lull::sim::cupti
