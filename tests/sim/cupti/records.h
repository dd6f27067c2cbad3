// CUPTI's activity records as the ABI has them, each in its newest layout.
//
// From one version of CUPTI to the next a record only grows: fields are appended or
// take over padding, none moves. An older version of a record is therefore the first
// record_size() bytes of the newest. Written from the published ABI, so that the build
// needs no toolkit; cupti_abi_test.cc compares with the vendor's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lull::sim::cupti {

// CUpti_ActivityKind, as far as records of it exist here.
enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpy2 = 22,
  kCudaEvent = 36,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kGraphTrace = 51,
};
inline constexpr uint32_t kKinds = 64;  // above every kind of any version

struct KernelRecord {
  uint32_t kind;
  uint8_t cache_config, shared_config;
  uint16_t registers;
  uint32_t cache_requested, cache_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;
  uint8_t launch_type, carveout_requested, carveout, padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit;
  uint32_t graph;
  void* access_policy;
  uint32_t channel, channel_type;
  uint32_t cluster[3];
  uint32_t cluster_policy;
  uint64_t local_total_v2;
  uint32_t max_cluster, max_active_clusters;
  uint8_t device_launched, padding3[7];
};

struct MemcpyRecord {
  uint32_t kind;
  uint8_t copy, source, destination, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation, runtime_correlation, pad;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph, channel, channel_type;
  uint8_t device_launched, pad2[3];
  uint64_t copies;
};

struct PeerRecord {
  uint32_t kind;
  uint8_t copy, source, destination, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, destination_device, destination_context;
  uint32_t correlation;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph, channel, channel_type, pad;
};

struct MemsetRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
  uint16_t flags, memory;
  uint32_t pad;
  void* reserved;
  uint64_t graph_node;
  uint32_t graph, channel, channel_type;
  uint8_t device_launched, pad2[3];
};

struct ApiRecord {
  uint32_t kind;
  uint32_t cbid;
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
};

struct SyncRecord {
  uint32_t kind;
  uint32_t type;
  uint64_t start, end;
  uint32_t correlation, context, stream, event;
  uint64_t event_record;
  uint32_t result, pad;
};

struct EventRecord {
  uint32_t kind;
  uint32_t correlation, context, stream, event, pad, device, pad2;
  void* reserved;
  uint64_t device_timestamp;
  uint64_t event_record;
};

struct OverheadRecord {
  uint32_t kind;
  uint32_t overhead;
  uint32_t object_kind;
  uint32_t object[3];  // process, thread; or device, context, stream
  uint64_t start, end;
  uint32_t correlation, reserved;
  void* data;
};

struct GraphRecord {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start, end;
  uint32_t device, graph, context, stream;
  void* reserved;
  uint32_t end_device, end_context;
};

struct ExternalRecord {
  uint32_t kind;
  uint32_t external_kind;
  uint64_t external;
  uint32_t correlation, reserved;
};

struct ContextRecord {
  uint32_t kind;
  uint32_t context, device;
  uint16_t api, null_stream;
  uint32_t parent;
  uint8_t green, padding;
  uint16_t multiprocessors;
  uint32_t cig, padding2;
};

struct DeviceRecord {
  uint32_t kind;
  uint32_t flags;
  uint64_t bandwidth, memory;  // kbytes/s, bytes
  uint32_t constant_memory, l2, warp, clock, copy_engines, multiprocessors, ipc;
  uint32_t warps_per_multiprocessor, blocks_per_multiprocessor;
  uint32_t shared_per_multiprocessor, registers_per_multiprocessor;
  uint32_t registers_per_block, shared_per_block, threads_per_block;
  uint32_t max_block[3], max_grid[3];
  uint32_t major, minor, id, ecc;
  uint8_t uuid[16];
  const char* name;
  uint8_t visible, mig, reserved[6];
  uint32_t gpu_instance, compute_instance;
  uint8_t mig_uuid[16];
  uint32_t numa_node, numa;
};

static_assert(sizeof(KernelRecord) == 216);
static_assert(offsetof(KernelRecord, start) == 16);
static_assert(offsetof(KernelRecord, grid) == 52);
static_assert(offsetof(KernelRecord, correlation) == 92);
static_assert(offsetof(KernelRecord, name) == 104);
static_assert(offsetof(KernelRecord, graph_node) == 144);
static_assert(offsetof(KernelRecord, graph) == 156);
static_assert(offsetof(KernelRecord, local_total_v2) == 192);
static_assert(sizeof(MemcpyRecord) == 96);
static_assert(offsetof(MemcpyRecord, correlation) == 44);
static_assert(sizeof(PeerRecord) == 96);
static_assert(offsetof(PeerRecord, correlation) == 60);
static_assert(sizeof(MemsetRecord) == 88);
static_assert(sizeof(ApiRecord) == 40);
static_assert(sizeof(SyncRecord) == 56);
static_assert(sizeof(EventRecord) == 56);
static_assert(sizeof(OverheadRecord) == 56);
static_assert(offsetof(OverheadRecord, start) == 24);
static_assert(sizeof(GraphRecord) == 56);
static_assert(sizeof(ExternalRecord) == 24);
static_assert(sizeof(ContextRecord) == 32);
static_assert(sizeof(DeviceRecord) == 184);

// Bytes of a record of `kind` as CUPTI's API version `version` writes it; 0 for a kind
// that is unknown.
size_t record_size(uint32_t kind, uint32_t version);

}  // namespace lull::sim::cupti
