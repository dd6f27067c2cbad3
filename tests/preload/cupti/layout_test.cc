// The layouts of preload/cupti/types.h against the vendor's headers: compiled where
// those are installed, and then it holds if it compiles.
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "preload/abi/event.h"
#include "preload/cupti/types.h"

namespace lull::cupti {
namespace {

#define SAME(ours, mine, vendors, theirs)                            \
  static_assert(offsetof(ours, mine) == offsetof(vendors, theirs) && \
                sizeof(ours::mine) == sizeof(vendors::theirs))

#define KERNEL(vendors)                                            \
  static_assert(sizeof(Kernel) <= sizeof(vendors));                \
  SAME(Kernel, kind, vendors, kind);                               \
  SAME(Kernel, registers_per_thread, vendors, registersPerThread); \
  SAME(Kernel, start, vendors, start);                             \
  SAME(Kernel, end, vendors, end);                                 \
  SAME(Kernel, device, vendors, deviceId);                         \
  SAME(Kernel, context, vendors, contextId);                       \
  SAME(Kernel, stream, vendors, streamId);                         \
  SAME(Kernel, grid[0], vendors, gridX);                           \
  SAME(Kernel, grid[2], vendors, gridZ);                           \
  SAME(Kernel, block[0], vendors, blockX);                         \
  SAME(Kernel, block[2], vendors, blockZ);                         \
  SAME(Kernel, static_shared, vendors, staticSharedMemory);        \
  SAME(Kernel, dynamic_shared, vendors, dynamicSharedMemory);      \
  SAME(Kernel, correlation, vendors, correlationId);               \
  SAME(Kernel, name, vendors, name);                               \
  SAME(Kernel, graph_node, vendors, graphNodeId);                  \
  SAME(Kernel, graph, vendors, graphId)
KERNEL(CUpti_ActivityKernel8);  // CUDA 11.8
KERNEL(CUpti_ActivityKernel9);  // CUDA 12
#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10);
#endif

#define TRANSFER(ours, vendors)                    \
  static_assert(sizeof(ours) <= sizeof(vendors));  \
  SAME(ours, kind, vendors, kind);                 \
  SAME(ours, bytes, vendors, bytes);               \
  SAME(ours, start, vendors, start);               \
  SAME(ours, end, vendors, end);                   \
  SAME(ours, device, vendors, deviceId);           \
  SAME(ours, context, vendors, contextId);         \
  SAME(ours, stream, vendors, streamId);           \
  SAME(ours, correlation, vendors, correlationId); \
  SAME(ours, graph, vendors, graphId)
#define COPY(ours, vendors)                  \
  TRANSFER(ours, vendors);                   \
  SAME(ours, copy_kind, vendors, copyKind);  \
  SAME(ours, source_kind, vendors, srcKind); \
  SAME(ours, destination_kind, vendors, dstKind)
COPY(Memcpy, CUpti_ActivityMemcpy5);
COPY(MemcpyPeer, CUpti_ActivityMemcpyPtoP4);
TRANSFER(Memset, CUpti_ActivityMemset4);
#if CUPTI_API_VERSION >= 26
COPY(Memcpy, CUpti_ActivityMemcpy6);
#endif

// decode.cc takes the numbers over.
#define NUMBER(ours, vendors) static_assert(static_cast<int>(ours) == (vendors))
NUMBER(abi::GpuCopyKind::kHostToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
NUMBER(abi::GpuCopyKind::kDeviceToHost, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
NUMBER(abi::GpuCopyKind::kHostToArray, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
NUMBER(abi::GpuCopyKind::kArrayToHost, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
NUMBER(abi::GpuCopyKind::kArrayToArray, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA);
NUMBER(abi::GpuCopyKind::kArrayToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
NUMBER(abi::GpuCopyKind::kDeviceToArray, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
NUMBER(abi::GpuCopyKind::kDeviceToDevice, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
NUMBER(abi::GpuCopyKind::kHostToHost, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
NUMBER(abi::GpuCopyKind::kPeerToPeer, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
NUMBER(abi::GpuMemoryKind::kPageable, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
NUMBER(abi::GpuMemoryKind::kPinned, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
NUMBER(abi::GpuMemoryKind::kDevice, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
NUMBER(abi::GpuMemoryKind::kArray, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
NUMBER(abi::GpuMemoryKind::kManaged, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
NUMBER(abi::GpuMemoryKind::kDeviceStatic, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
NUMBER(abi::GpuMemoryKind::kManagedStatic, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);

static_assert(sizeof(ApiCall) == sizeof(CUpti_ActivityAPI));
SAME(ApiCall, callback, CUpti_ActivityAPI, cbid);
SAME(ApiCall, start, CUpti_ActivityAPI, start);
SAME(ApiCall, end, CUpti_ActivityAPI, end);
SAME(ApiCall, thread, CUpti_ActivityAPI, threadId);
SAME(ApiCall, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiCall, return_value, CUpti_ActivityAPI, returnValue);

#define SYNCHRONIZATION(vendors)                              \
  static_assert(sizeof(Synchronization) <= sizeof(vendors));  \
  SAME(Synchronization, type, vendors, type);                 \
  SAME(Synchronization, start, vendors, start);               \
  SAME(Synchronization, end, vendors, end);                   \
  SAME(Synchronization, correlation, vendors, correlationId); \
  SAME(Synchronization, context, vendors, contextId);         \
  SAME(Synchronization, stream, vendors, streamId);           \
  SAME(Synchronization, event, vendors, cudaEventId)
SYNCHRONIZATION(CUpti_ActivitySynchronization);
#if CUPTI_API_VERSION >= 26
SYNCHRONIZATION(CUpti_ActivitySynchronization2);
#endif

#define GRAPH(vendors)                                   \
  static_assert(sizeof(GraphTrace) <= sizeof(vendors));  \
  SAME(GraphTrace, correlation, vendors, correlationId); \
  SAME(GraphTrace, start, vendors, start);               \
  SAME(GraphTrace, end, vendors, end);                   \
  SAME(GraphTrace, device, vendors, deviceId);           \
  SAME(GraphTrace, graph, vendors, graphId);             \
  SAME(GraphTrace, context, vendors, contextId);         \
  SAME(GraphTrace, stream, vendors, streamId)
GRAPH(CUpti_ActivityGraphTrace);

TEST(CuptiLayout, NumbersAreTheVendors) {
  auto number = [](Kind kind) { return static_cast<uint32_t>(kind); };
  EXPECT_EQ(number(Kind::kMemcpy), uint32_t{CUPTI_ACTIVITY_KIND_MEMCPY});
  EXPECT_EQ(number(Kind::kMemset), uint32_t{CUPTI_ACTIVITY_KIND_MEMSET});
  EXPECT_EQ(number(Kind::kDriver), uint32_t{CUPTI_ACTIVITY_KIND_DRIVER});
  EXPECT_EQ(number(Kind::kRuntime), uint32_t{CUPTI_ACTIVITY_KIND_RUNTIME});
  EXPECT_EQ(number(Kind::kConcurrentKernel),
            uint32_t{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  EXPECT_EQ(number(Kind::kMemcpyPeer), uint32_t{CUPTI_ACTIVITY_KIND_MEMCPY2});
  EXPECT_EQ(number(Kind::kSynchronization),
            uint32_t{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
  EXPECT_EQ(number(Kind::kGraphTrace), uint32_t{CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  EXPECT_EQ(static_cast<int>(Domain::kDriver), CUPTI_CB_DOMAIN_DRIVER_API);
  EXPECT_EQ(static_cast<int>(Domain::kRuntime), CUPTI_CB_DOMAIN_RUNTIME_API);
  EXPECT_EQ(kFlushForced, uint32_t{CUPTI_ACTIVITY_FLAG_FLUSH_FORCED});
  EXPECT_EQ(kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  EXPECT_EQ(kStreamWaitEvent,
            uint32_t{CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT});
  EXPECT_EQ(kNoMoreRecords, CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
}

}  // namespace
}  // namespace lull::cupti
