// Our declarations of CUPTI's ABI against the vendor's headers, where a toolkit with
// them is installed. It is the compiler that tests most of it.
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "tests/sim/cupti/api.h"
#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/records.h"

namespace lull::sim::cupti {
namespace {

#define SAME(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

using Kernel = CUpti_ActivityKernel10;
static_assert(sizeof(KernelRecord) == sizeof(Kernel));
SAME(KernelRecord, registers, Kernel, registersPerThread);
SAME(KernelRecord, start, Kernel, start);
SAME(KernelRecord, end, Kernel, end);
SAME(KernelRecord, completed, Kernel, completed);
SAME(KernelRecord, device, Kernel, deviceId);
SAME(KernelRecord, context, Kernel, contextId);
SAME(KernelRecord, stream, Kernel, streamId);
SAME(KernelRecord, grid, Kernel, gridX);
SAME(KernelRecord, block, Kernel, blockX);
SAME(KernelRecord, dynamic_shared, Kernel, dynamicSharedMemory);
SAME(KernelRecord, correlation, Kernel, correlationId);
SAME(KernelRecord, grid_id, Kernel, gridId);
SAME(KernelRecord, name, Kernel, name);
SAME(KernelRecord, shared_executed, Kernel, sharedMemoryExecuted);
SAME(KernelRecord, graph_node, Kernel, graphNodeId);
SAME(KernelRecord, graph, Kernel, graphId);
SAME(KernelRecord, channel, Kernel, channelID);
SAME(KernelRecord, cluster, Kernel, clusterX);
SAME(KernelRecord, local_total_v2, Kernel, localMemoryTotal_v2);
SAME(KernelRecord, device_launched, Kernel, isDeviceLaunched);

using Memcpy = CUpti_ActivityMemcpy6;
static_assert(sizeof(MemcpyRecord) == sizeof(Memcpy));
SAME(MemcpyRecord, copy, Memcpy, copyKind);
SAME(MemcpyRecord, source, Memcpy, srcKind);
SAME(MemcpyRecord, destination, Memcpy, dstKind);
SAME(MemcpyRecord, flags, Memcpy, flags);
SAME(MemcpyRecord, bytes, Memcpy, bytes);
SAME(MemcpyRecord, start, Memcpy, start);
SAME(MemcpyRecord, stream, Memcpy, streamId);
SAME(MemcpyRecord, correlation, Memcpy, correlationId);
SAME(MemcpyRecord, graph_node, Memcpy, graphNodeId);
SAME(MemcpyRecord, graph, Memcpy, graphId);
SAME(MemcpyRecord, copies, Memcpy, copyCount);

using Peer = CUpti_ActivityMemcpyPtoP4;
static_assert(sizeof(PeerRecord) == sizeof(Peer));
SAME(PeerRecord, source_device, Peer, srcDeviceId);
SAME(PeerRecord, destination_context, Peer, dstContextId);
SAME(PeerRecord, correlation, Peer, correlationId);
SAME(PeerRecord, graph_node, Peer, graphNodeId);
SAME(PeerRecord, graph, Peer, graphId);

using Memset = CUpti_ActivityMemset4;
static_assert(sizeof(MemsetRecord) == sizeof(Memset));
SAME(MemsetRecord, value, Memset, value);
SAME(MemsetRecord, start, Memset, start);
SAME(MemsetRecord, correlation, Memset, correlationId);
SAME(MemsetRecord, memory, Memset, memoryKind);
SAME(MemsetRecord, graph_node, Memset, graphNodeId);
SAME(MemsetRecord, graph, Memset, graphId);

static_assert(sizeof(ApiRecord) == sizeof(CUpti_ActivityAPI));
SAME(ApiRecord, cbid, CUpti_ActivityAPI, cbid);
SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiRecord, result, CUpti_ActivityAPI, returnValue);

using Sync = CUpti_ActivitySynchronization2;
static_assert(sizeof(SyncRecord) == sizeof(Sync));
SAME(SyncRecord, type, Sync, type);
SAME(SyncRecord, correlation, Sync, correlationId);
SAME(SyncRecord, stream, Sync, streamId);
SAME(SyncRecord, event, Sync, cudaEventId);
SAME(SyncRecord, event_record, Sync, cudaEventSyncId);
SAME(SyncRecord, result, Sync, returnValue);

using Event = CUpti_ActivityCudaEvent2;
static_assert(sizeof(EventRecord) == sizeof(Event));
SAME(EventRecord, event, Event, eventId);
SAME(EventRecord, device, Event, deviceId);
SAME(EventRecord, device_timestamp, Event, deviceTimestamp);
SAME(EventRecord, event_record, Event, cudaEventSyncId);

using Overhead = CUpti_ActivityOverhead3;
static_assert(sizeof(OverheadRecord) == sizeof(Overhead));
SAME(OverheadRecord, object, Overhead, objectId);
SAME(OverheadRecord, start, Overhead, start);
SAME(OverheadRecord, correlation, Overhead, correlationId);
SAME(OverheadRecord, data, Overhead, overheadData);

using Graph = CUpti_ActivityGraphTrace2;
static_assert(sizeof(GraphRecord) == sizeof(Graph));
SAME(GraphRecord, start, Graph, start);
SAME(GraphRecord, graph, Graph, graphId);
SAME(GraphRecord, stream, Graph, streamId);
SAME(GraphRecord, end_context, Graph, endContextId);

using External = CUpti_ActivityExternalCorrelation;
static_assert(sizeof(ExternalRecord) == sizeof(External));
SAME(ExternalRecord, external, External, externalId);
SAME(ExternalRecord, correlation, External, correlationId);

using ContextInfo = CUpti_ActivityContext3;
static_assert(sizeof(ContextRecord) == sizeof(ContextInfo));
SAME(ContextRecord, null_stream, ContextInfo, nullStreamId);
SAME(ContextRecord, multiprocessors, ContextInfo, numMultiprocessors);

using DeviceInfo = CUpti_ActivityDevice5;
static_assert(sizeof(DeviceRecord) == sizeof(DeviceInfo));
SAME(DeviceRecord, multiprocessors, DeviceInfo, numMultiprocessors);
SAME(DeviceRecord, threads_per_block, DeviceInfo, maxThreadsPerBlock);
SAME(DeviceRecord, id, DeviceInfo, id);
SAME(DeviceRecord, name, DeviceInfo, name);
SAME(DeviceRecord, gpu_instance, DeviceInfo, gpuInstanceId);
SAME(DeviceRecord, numa, DeviceInfo, numaId);

static_assert(kConcurrentKernel == uint32_t{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
static_assert(kMemcpy2 == uint32_t{CUPTI_ACTIVITY_KIND_MEMCPY2});
static_assert(kCudaEvent == uint32_t{CUPTI_ACTIVITY_KIND_CUDA_EVENT});
static_assert(kSynchronization == uint32_t{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
static_assert(kGraphTrace == uint32_t{CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
static_assert(kErrorSizeNotSufficient == CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
static_assert(kErrorMaxLimitReached == CUPTI_ERROR_MAX_LIMIT_REACHED);
static_assert(kErrorInvalidKind == CUPTI_ERROR_INVALID_KIND);
static_assert(kErrorMultipleSubscribers ==
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

TEST(SimCuptiAbi, OlderRecordsAreAsLongAsTheHeaderSays) {
  EXPECT_EQ(record_size(kConcurrentKernel, 12), sizeof(CUpti_ActivityKernel4));
  EXPECT_EQ(record_size(kConcurrentKernel, 13), sizeof(CUpti_ActivityKernel5));
  EXPECT_EQ(record_size(kConcurrentKernel, 15), sizeof(CUpti_ActivityKernel6));
  EXPECT_EQ(record_size(kConcurrentKernel, 17), sizeof(CUpti_ActivityKernel7));
  EXPECT_EQ(record_size(kConcurrentKernel, 18), sizeof(CUpti_ActivityKernel8));
  EXPECT_EQ(record_size(kConcurrentKernel, 28), sizeof(CUpti_ActivityKernel9));
  EXPECT_EQ(record_size(kMemcpy, 12), sizeof(CUpti_ActivityMemcpy));
  EXPECT_EQ(record_size(kMemcpy, 13), sizeof(CUpti_ActivityMemcpy3));
  EXPECT_EQ(record_size(kMemcpy, 14), sizeof(CUpti_ActivityMemcpy4));
  EXPECT_EQ(record_size(kMemcpy, 24), sizeof(CUpti_ActivityMemcpy5));
  EXPECT_EQ(record_size(kMemcpy2, 12), sizeof(CUpti_ActivityMemcpyPtoP));
  EXPECT_EQ(record_size(kMemcpy2, 13), sizeof(CUpti_ActivityMemcpyPtoP2));
  EXPECT_EQ(record_size(kMemcpy2, 14), sizeof(CUpti_ActivityMemcpyPtoP3));
  EXPECT_EQ(record_size(kMemset, 12), sizeof(CUpti_ActivityMemset));
  EXPECT_EQ(record_size(kMemset, 13), sizeof(CUpti_ActivityMemset2));
  EXPECT_EQ(record_size(kMemset, 14), sizeof(CUpti_ActivityMemset3));
  EXPECT_EQ(record_size(kSynchronization, 24), sizeof(CUpti_ActivitySynchronization));
  EXPECT_EQ(record_size(kCudaEvent, 24), sizeof(CUpti_ActivityCudaEvent));
  EXPECT_EQ(record_size(kOverhead, 19), sizeof(CUpti_ActivityOverhead));
  EXPECT_EQ(record_size(kOverhead, 20), sizeof(CUpti_ActivityOverhead2));
  EXPECT_EQ(record_size(kGraphTrace, 19), sizeof(CUpti_ActivityGraphTrace));
  EXPECT_EQ(record_size(kContext, 19), sizeof(CUpti_ActivityContext));
  EXPECT_EQ(record_size(kContext, 22), sizeof(CUpti_ActivityContext2));
  EXPECT_EQ(record_size(kDevice, 16), sizeof(CUpti_ActivityDevice3));
  EXPECT_EQ(record_size(kDevice, 17), sizeof(CUpti_ActivityDevice4));
}

TEST(SimCuptiAbi, FunctionsHaveTheIdsOfTheHeader) {
  struct Row {
    const char* function;
    uint32_t id;
  };
  constexpr Row kRuntimeRows[] = {
#define R(function, enumerator, id) {#function, CUPTI_RUNTIME_TRACE_CBID_##enumerator},
#include "tests/sim/cupti/runtime_cbids.inc"
#undef R
  };
  constexpr Row kDriverRows[] = {
#define D(function, id) {#function, CUPTI_DRIVER_TRACE_CBID_##function},
#include "tests/sim/cupti/driver_cbids.inc"
#undef D
  };
  for (const Row& row : kRuntimeRows) EXPECT_EQ(runtime_cbid(row.function), row.id);
  for (const Row& row : kDriverRows) EXPECT_EQ(driver_cbid(row.function), row.id);
}

}  // namespace
}  // namespace lull::sim::cupti
