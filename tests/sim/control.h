// What libcuda.so.1 of the simulated device exports besides the driver's API:
// control for tests, and the link to the simulated runtimes. Plain C.
#pragma once

#include <stdint.h>

#include "tests/sim/engine/api_call.h"
#include "tests/sim/engine/exchange.h"
#include "tests/sim/engine/observer.h"

extern "C" {

// Sets one key of the configuration (docs/simulated_device.md) from now on.
// 1, or 0 if key or value are not understood. The counts that shape the machine
// (devices, concurrent_kernels) have no effect after cuInit.
int lull_sim_set(const char* key, const char* value);

// The next kernel launched by the calling thread takes `ns`.
void lull_sim_next_kernel_ns(int64_t ns);

// The same for a kernel that does `flops` operations (on tensor cores or not) on
// `bytes` of memory: it takes what the slower of both takes at the configured rates,
// unless the configuration has an entry for its name.
void lull_sim_next_kernel_work(double flops, double bytes, int tensor);

// Time the calling thread has spent blocked on the device so far.
int64_t lull_sim_blocked_ns(void);

// Whether any library is told of calls and operations just now; 1 or 0.
int lull_sim_observed(void);

// Bytes of device memory that are allocated.
int64_t lull_sim_device_bytes(int device);

// For the runtime libraries: cuInit without a record of its own, and the frame of
// a runtime call.
int lull_sim_start(void);
void lull_sim_begin_api(lull::sim::ApiFrame* frame, const char* name,
                        lull::sim::NameCache* cache);
void lull_sim_end_api(lull::sim::ApiFrame* frame, int result);

// For libnccl.so.2. The next kernel launched by the calling thread is an exchange;
// null: it is none, after all.
void lull_sim_next_exchange(const lull::sim::Exchange* exchange);
// What became of an exchange whose end was not known when it began.
void lull_sim_exchanged(uint64_t kernel, const lull::sim::Exchanged* exchanged);
// Blocks until the last exchange of `member` has ended.
void lull_sim_end_exchanges(const void* member);
int64_t lull_sim_nccl_timeout_ns(void);

// For the tracing libraries. Nothing here initialises the driver.
int lull_sim_add_observer(const lull::sim::Observer* observer);
void lull_sim_remove_observer(const lull::sim::Observer* observer);
int64_t lull_sim_clock_step_ns(void);
int64_t lull_sim_stays_ns(void);
// The newest id of what the program has made so far, graphs among it; 0: nothing.
uint64_t lull_sim_newest_id(void);
// Number of devices; 0 before cuInit.
int lull_sim_device_count(void);
// Ids of the handles (null: the current context, its default stream). 0 if unknown.
int lull_sim_context_id(const void* context, uint32_t* id, uint32_t* device);
int lull_sim_stream_id(const void* context, const void* stream, int per_thread,
                       uint32_t* id);
// The id and device of context number `index`, oldest first; 0 past the last.
int lull_sim_context_at(int index, uint32_t* id, uint32_t* device);

}  // extern "C"
