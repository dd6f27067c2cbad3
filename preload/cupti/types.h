// CUPTI's activity API (V1), as far as lull calls it: results, kinds, functions and
// the records that it reads, in our own words, so that the build needs no CUDA.
//
// A record is declared up to the last field that lull reads. Every one of those
// exists since CUPTI 11.8 (kOldestVersion), and up to 13.x no field of these records
// has ever moved: later versions append. So one layout serves all of them, and a
// record may be longer than what stands here. Always step with get_next_record,
// which knows the true sizes. Checked against the vendor's headers, where those are
// installed, by tests/preload/cupti_layout_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lull::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kNoMoreRecords = 12;   // CUPTI_ERROR_MAX_LIMIT_REACHED
inline constexpr Result kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED

// cuptiGetVersion() of CUDA 11.8. From 13.0 on it counts as 130000, 130001...
inline constexpr uint32_t kOldestVersion = 18;
inline constexpr uint32_t kOldestToFinalize = 130000;  // takedown.h

enum class Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kMemcpyPeer = 22,  // comes with kMemcpy
  kSynchronization = 38,
  kGraphTrace = 51,
};

enum class Domain : int { kDriver = 1, kRuntime = 2 };

inline constexpr uint32_t kFlushCompleted = 0;
inline constexpr uint32_t kFlushForced = 1;

inline constexpr int kThreadIdDefault = 0;
inline constexpr int kThreadIdSystem = 1;  // gettid()

struct Activity {
  Kind kind;
  uint32_t rest;
};

struct Kernel {  // CUpti_ActivityKernel8 and later
  Kind kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  uint32_t partitioned_cache_requested;
  uint32_t partitioned_cache_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_memory_per_thread;
  uint32_t local_memory_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t carveout_is_requested;
  uint8_t carveout_requested;
  uint8_t padding;
  uint32_t shared_memory_executed;
  uint64_t graph_node;
  uint32_t shared_memory_limit_config;
  uint32_t graph;
};

struct Memcpy {  // CUpti_ActivityMemcpy5 and later
  Kind kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t runtime_correlation;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct MemcpyPeer {  // CUpti_ActivityMemcpyPtoP4
  Kind kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t destination_device;
  uint32_t destination_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct Memset {  // CUpti_ActivityMemset4
  Kind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t padding;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct ApiCall {  // CUpti_ActivityAPI
  Kind kind;
  uint32_t callback;
  uint64_t start;
  uint64_t end;
  uint32_t process;
  uint32_t thread;
  uint32_t correlation;
  uint32_t return_value;
};

inline constexpr uint32_t kStreamWaitEvent = 2;

struct Synchronization {  // CUpti_ActivitySynchronization and later
  Kind kind;
  uint32_t type;
  uint64_t start;
  uint64_t end;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;
  uint32_t event;
};

struct GraphTrace {  // CUpti_ActivityGraphTrace and later
  Kind kind;
  uint32_t correlation;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t graph;
  uint32_t context;
  uint32_t stream;
};

// Callbacks.
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer,
                                 size_t size, size_t valid);
using TimestampCallback = uint64_t (*)();

// The functions of one libcupti. Those under "optional" may be null.
struct Api {
  Result (*get_version)(uint32_t*);
  Result (*get_timestamp)(uint64_t*);
  Result (*register_callbacks)(BufferRequested, BufferCompleted);
  Result (*enable)(Kind);
  Result (*disable)(Kind);
  Result (*flush_all)(uint32_t flag);
  Result (*get_next_record)(uint8_t* buffer, size_t valid, Activity** record);
  Result (*get_dropped)(void* context, uint32_t stream, size_t* dropped);
  Result (*get_callback_name)(Domain, uint32_t callback, const char** name);
  // Optional.
  Result (*flush_period)(uint32_t milliseconds);
  Result (*set_thread_id_type)(int);
  Result (*get_thread_id_type)(int*);
  Result (*enable_runtime_api)(uint32_t callback, uint8_t enable);  // 12.5
  Result (*enable_driver_api)(uint32_t callback, uint8_t enable);   // 12.5
  Result (*subscribe)(void** out, void* callback, void* user_data);
  Result (*unsubscribe)(void*);
  Result (*finalize)();

  uint32_t version;  // as get_version says
};

}  // namespace lull::cupti
