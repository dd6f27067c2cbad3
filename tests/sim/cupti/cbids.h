// Names of API functions and CUPTI's ids of them.
#pragma once

#include <cstdint>

namespace lull::sim::cupti {

// 0 for a function that CUPTI does not trace.
uint32_t runtime_cbid(const char* function);
uint32_t driver_cbid(const char* function);

// The name that CUPTI gives the id ("cudaMalloc_v3020"); null if there is none.
const char* runtime_name(uint32_t cbid);
const char* driver_name(uint32_t cbid);

}  // namespace lull::sim::cupti
