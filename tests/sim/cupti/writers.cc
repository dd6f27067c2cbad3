// The records themselves.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>

#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/link.h"
#include "tests/sim/cupti/settings.h"
#include "tests/sim/cupti/tracer.h"
#include "tests/sim/driver/device.h"
#include "tests/sim/engine/clock.h"
#include "tests/sim/engine/op.h"

namespace lull::sim::cupti {
namespace {

constexpr uint32_t kInvalid = ~0u;  // CUPTI_SYNCHRONIZATION_INVALID_VALUE
constexpr int kNotReady = 600;
constexpr uint32_t kThreadObject = 2;  // CUPTI_ACTIVITY_OBJECT_THREAD

// CUpti_ActivityMemoryKind.
constexpr uint8_t kPageable = 1, kPinned = 2, kOnDevice = 3;

uint32_t id(uint64_t wide) { return static_cast<uint32_t>(wide); }

// CUpti_ActivityMemcpyKind of a CopyKind.
uint8_t copy_kind(CopyKind kind) {
  switch (kind) {
    case CopyKind::kH2D:
      return 1;
    case CopyKind::kD2H:
      return 2;
    case CopyKind::kD2D:
      return 8;
    case CopyKind::kH2H:
      return 9;
  }
  return 0;
}

constexpr uint8_t kPeerToPeer = 10;

// What most records of device work share.
template <typename Record>
Record record_of(uint32_t kind, const OpEvent& op, uint64_t start, uint64_t end) {
  Record record{};
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.device = op.device;
  record.context = id(op.context);
  record.stream = id(op.stream);
  record.correlation = id(op.correlation);
  record.graph = id(op.graph);
  return record;
}

}  // namespace

template <typename Record>
void Tracer::write(uint32_t lane, const Record& record) {
  output_.write(lane, &record, record_size(record.kind, version_));
}

template <typename Record>
void Tracer::spoil(Record* record) {
  int64_t every = settings().garbage;
  if (every == 0 || ++device_records_ % every != 0) return;
  switch (device_records_ / every % 5) {
    case 0:
      return std::swap(record->start, record->end);
    case 1:
      record->start = record->end = 0;
      return;
    case 2:
      record->start = 1;
      record->end = ~uint64_t{0} / 2;
      return;
    case 3:
      if constexpr (requires { record->name; }) record->name = nullptr;
      return;
    default:
      record->stream = 0xdeadbeef;
  }
}

void Tracer::write_api(const ApiEvent& event) {
  if (!traces(event)) return;
  uint32_t cbid = event.runtime ? runtime_cbid(event.name) : driver_cbid(event.name);
  if (enabled(kExternalCorrelation)) write_external(id(event.correlation));
  ApiRecord record{};
  record.kind = event.runtime ? kRuntime : kDriver;
  record.cbid = cbid;
  record.start = clock_.convert(event.start_ns);
  record.end = clock_.convert(event.end_ns);
  record.process = static_cast<uint32_t>(getpid());
  record.thread = record_thread(system_thread_ids);
  record.correlation = id(event.correlation);
  record.result = static_cast<uint32_t>(event.result);
  write(record_thread(true), record);
}

void Tracer::write_external(uint32_t correlation) {
  for (uint32_t kind = 1; kind < kExternalKinds; ++kind) {
    const std::vector<uint64_t>& ids = *external_ids(kind);
    if (ids.empty()) continue;
    ExternalRecord record{kExternalCorrelation, kind, ids.back(), correlation, 0};
    write(record_thread(true), record);
  }
}

void Tracer::write_op(const OpEvent& op, bool incomplete) {
  bool started = op.start_ns != 0 && (!incomplete || op.start_ns <= now_ns());
  uint64_t start = started ? clock_.convert(op.start_ns) : 0;
  uint64_t end = op.start_ns != 0 && !incomplete ? clock_.convert(op.end_ns) : 0;
  switch (static_cast<OpKind>(op.kind)) {
    case OpKind::kKernel:
      return write_kernel(op, start, end);
    case OpKind::kCopy:
      return write_copy(op, start, end);
    case OpKind::kMemset:
      return write_memset(op, start, end);
    case OpKind::kEventRecord:
      return write_event(op);
    default:
      return write_graph(op, start, end);
  }
}

void Tracer::write_kernel(const OpEvent& op, uint64_t start, uint64_t end) {
  uint32_t kind = enabled(kKernel) ? kKernel : kConcurrentKernel;
  auto record = record_of<KernelRecord>(kind, op, start, end);
  record.completed = end;
  record.registers = 32;
  for (int axis = 0; axis < 3; ++axis) {
    record.grid[axis] = static_cast<int32_t>(op.shape[axis]);
    record.block[axis] = static_cast<int32_t>(op.shape[3 + axis]);
  }
  record.dynamic_shared = static_cast<int32_t>(op.shared);
  record.shared_executed = kSharedPerMultiprocessor;
  record.grid_id = ++launches_;
  record.name = op.name;
  record.graph_node = op.graph_node;
  spoil(&record);
  write(kDeviceLane, record);
}

void Tracer::write_copy(const OpEvent& op, uint64_t start, uint64_t end) {
  auto kind = static_cast<CopyKind>(op.copy);
  uint8_t host = op.pageable ? kPageable : kPinned;
  bool from_host = kind == CopyKind::kH2D || kind == CopyKind::kH2H;
  bool to_host = kind == CopyKind::kD2H || kind == CopyKind::kH2H;
  auto fill = [&](auto record) {
    record.copy = copy_kind(kind);
    record.source = from_host ? host : kOnDevice;
    record.destination = to_host ? host : kOnDevice;
    record.flags = op.asynchronous ? 1 : 0;
    record.bytes = op.bytes;
    record.graph_node = op.graph_node;
    return record;
  };
  if (kind == CopyKind::kD2D && op.source_device != op.device) {
    auto record = fill(record_of<PeerRecord>(kMemcpy2, op, start, end));
    record.copy = kPeerToPeer;
    record.source_device = op.source_device;
    record.destination_device = op.device;
    record.destination_context = id(op.context);
    spoil(&record);
    return write(kDeviceLane, record);
  }
  auto record = fill(record_of<MemcpyRecord>(kMemcpy, op, start, end));
  record.copies = 1;
  spoil(&record);
  write(kDeviceLane, record);
}

void Tracer::write_memset(const OpEvent& op, uint64_t start, uint64_t end) {
  auto record = record_of<MemsetRecord>(kMemset, op, start, end);
  record.value = op.value;
  record.bytes = op.bytes;
  record.flags = op.asynchronous ? 1 : 0;
  record.memory = kOnDevice;
  record.graph_node = op.graph_node;
  spoil(&record);
  write(kDeviceLane, record);
}

void Tracer::write_graph(const OpEvent& op, uint64_t start, uint64_t end) {
  auto record = record_of<GraphRecord>(kGraphTrace, op, start, end);
  record.end_device = op.device;
  record.end_context = id(op.context);
  spoil(&record);
  write(kDeviceLane, record);
}

void Tracer::write_event(const OpEvent& op) {
  EventRecord record{};
  record.kind = kCudaEvent;
  record.correlation = id(op.correlation);
  record.context = id(op.context);
  record.stream = id(op.stream);
  record.event = id(op.handle);
  record.device = op.device;
  record.event_record = op.correlation;
  if (event_timestamps) record.device_timestamp = clock_.convert(op.end_ns);
  write(kDeviceLane, record);
}

void Tracer::on_sync(const SyncEvent& event) {
  if (in_client() || !enabled(kSynchronization)) return;
  constexpr uint32_t kNoContextSync = 130000;  // a defect of this release
  constexpr uint32_t kFailuresToo = 26;
  if (version_ == kNoContextSync && event.kind == SyncKind::kContext) return;
  if (version_ < kFailuresToo && event.result != 0) return;
  if (event.query && event.result == kNotReady && !all_sync_records) return;
  std::lock_guard lock(output_.mutex());
  clock_.look();
  SyncRecord record{};
  record.kind = kSynchronization;
  record.type = static_cast<uint32_t>(event.kind);
  record.start = clock_.convert(event.start_ns);
  record.end = clock_.convert(event.end_ns);
  record.correlation = id(event.correlation);
  record.context = id(event.context);
  bool of_stream = event.kind != SyncKind::kContext;
  bool of_event =
      event.kind == SyncKind::kEvent || event.kind == SyncKind::kStreamWaitEvent;
  record.stream = of_stream ? id(event.stream) : kInvalid;
  record.event = of_event ? id(event.event) : kInvalid;
  record.event_record = of_event ? event.event_record : 0;
  record.result = static_cast<uint32_t>(event.result);
  write(record_thread(true), record);
}

void Tracer::on_stall(const StallEvent& event) {
  constexpr uint32_t kCommandBufferFull = 6 << 16;
  constexpr uint32_t kSince = 22;  // API version
  if (in_client() || version_ < kSince || !enabled(kOverhead)) return;
  std::lock_guard lock(output_.mutex());
  clock_.look();
  write_overhead(kCommandBufferFull, event.correlation, event.start_ns, event.end_ns);
}

void Tracer::write_overhead(uint32_t overhead, uint64_t correlation, int64_t start_ns,
                            int64_t end_ns) {
  OverheadRecord record{};
  record.kind = kOverhead;
  record.overhead = overhead;
  record.object_kind = kThreadObject;
  record.object[0] = static_cast<uint32_t>(getpid());
  record.object[1] = record_thread(system_thread_ids);
  record.start = clock_.convert(start_ns);
  record.end = clock_.convert(end_ns);
  record.correlation = id(correlation);
  write(record_thread(true), record);
}

void Tracer::write_context(uint32_t context, uint32_t device) {
  ContextRecord record{};
  record.kind = kContext;
  record.context = context;
  record.device = device;
  record.api = 1;  // CUDA
  record.multiprocessors = kMultiprocessors;
  write(kDeviceLane, record);
}

void Tracer::write_device(uint32_t device) {
  DeviceRecord record{};
  record.kind = kDevice;
  record.id = device;
  record.name = kDeviceName;
  record.memory = uint64_t{80} << 30;
  record.l2 = kL2Bytes;
  record.warp = kWarp;
  record.copy_engines = 2;
  record.multiprocessors = kMultiprocessors;
  record.warps_per_multiprocessor = kThreadsPerMultiprocessor / kWarp;
  record.blocks_per_multiprocessor = kBlocksPerMultiprocessor;
  record.shared_per_multiprocessor = kSharedPerMultiprocessor;
  record.registers_per_multiprocessor = kRegisters;
  record.registers_per_block = kRegisters;
  record.shared_per_block = kSharedPerBlock;
  record.threads_per_block = kThreadsPerBlock;
  record.major = kComputeMajor;
  record.minor = kComputeMinor;
  record.visible = 1;
  write(kDeviceLane, record);
}

void Tracer::dump(uint32_t kind) {
  const Driver* driver = load_driver();
  if (driver == nullptr) return;
  std::lock_guard lock(output_.mutex());
  if (kind == kDevice) {
    for (int device = 0; device < driver->device_count(); ++device) {
      write_device(static_cast<uint32_t>(device));
    }
  }
  uint32_t context, device;
  for (int i = 0; kind == kContext && driver->context_at(i, &context, &device); ++i) {
    write_context(context, device);
  }
}

}  // namespace lull::sim::cupti
