#include "preload/cupti/decode.h"

#include <iterator>

#include "preload/cupti/entries.h"

namespace lull::cupti {
namespace {

using abi::EventType;

// Clocks of device and host agree to some microseconds: nothing ends later than this
// after its buffer came back.
constexpr uint64_t kFutureNs = 10'000'000;

// By CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind.
constexpr abi::GpuCopyKind kCopyKinds[] = {
    abi::GpuCopyKind::kUnknown,        abi::GpuCopyKind::kHostToDevice,
    abi::GpuCopyKind::kDeviceToHost,   abi::GpuCopyKind::kHostToArray,
    abi::GpuCopyKind::kArrayToHost,    abi::GpuCopyKind::kArrayToArray,
    abi::GpuCopyKind::kArrayToDevice,  abi::GpuCopyKind::kDeviceToArray,
    abi::GpuCopyKind::kDeviceToDevice, abi::GpuCopyKind::kHostToHost,
    abi::GpuCopyKind::kPeerToPeer};
constexpr abi::GpuMemoryKind kMemoryKinds[] = {
    abi::GpuMemoryKind::kUnknown,      abi::GpuMemoryKind::kPageable,
    abi::GpuMemoryKind::kPinned,       abi::GpuMemoryKind::kDevice,
    abi::GpuMemoryKind::kArray,        abi::GpuMemoryKind::kManaged,
    abi::GpuMemoryKind::kDeviceStatic, abi::GpuMemoryKind::kManagedStatic};

abi::GpuCopyKind copy_kind(uint8_t cupti) {
  return cupti < std::size(kCopyKinds) ? kCopyKinds[cupti] : abi::GpuCopyKind::kUnknown;
}
abi::GpuMemoryKind memory_kind(uint8_t cupti) {
  return cupti < std::size(kMemoryKinds) ? kMemoryKinds[cupti]
                                         : abi::GpuMemoryKind::kUnknown;
}

// The whole of T can be read.
template <typename T>
const T* as(const Activity* record, size_t size) {
  return size >= sizeof(T) ? reinterpret_cast<const T*>(record) : nullptr;
}

class Decoding {
 public:
  Decoding(const Decoder& decoder, const ClockView& clock, const Lifetime& lifetime,
           abi::Event* event)
      : decoder_(decoder), clock_(clock), lifetime_(lifetime), event_(event) {}

  Outcome kernel(const Kernel* record) {
    if (record == nullptr || record->name == nullptr) return Outcome::kSenseless;
    Outcome outcome = operation(EventType::kGpuKernel, *record);
    if (outcome != Outcome::kEvent) return outcome;
    event_->arg0 = record->graph;
    event_->arg1 = record->graph_node;
    event_->py_stack = intern_kernel(decoder_.segment, *record);
    return outcome;
  }

  template <typename Copy>
  Outcome copy(const Copy* record) {
    if (record == nullptr) return Outcome::kSenseless;
    Outcome outcome = operation(EventType::kGpuCopy, *record);
    event_->arg0 = record->bytes;
    event_->arg1 = static_cast<uint64_t>(copy_kind(record->copy_kind)) |
                   static_cast<uint64_t>(memory_kind(record->source_kind)) << 8 |
                   static_cast<uint64_t>(memory_kind(record->destination_kind)) << 16 |
                   uint64_t{record->graph} << 32;
    return outcome;
  }

  Outcome memset(const Memset* record) {
    if (record == nullptr) return Outcome::kSenseless;
    Outcome outcome = operation(EventType::kGpuMemset, *record);
    event_->arg0 = record->bytes;
    event_->arg1 = record->graph;
    return outcome;
  }

  // Comes where another user has GRAPH_TRACE enabled; we never do (tracing.cc).
  Outcome graph(const GraphTrace* record) {
    if (record == nullptr) return Outcome::kSenseless;
    Outcome outcome = operation(EventType::kGpuGraph, *record);
    event_->arg0 = record->graph;
    return outcome;
  }

  Outcome call(Domain domain, const ApiCall* record) {
    if (record == nullptr) return Outcome::kSenseless;
    uint16_t base =
        domain == Domain::kRuntime ? abi::kRuntimeCallBase : abi::kDriverCallBase;
    constexpr uint32_t kIds = abi::kCallIdEnd - abi::kDriverCallBase;
    abi::Ref text = 0;
    if (record->callback >= kIds) return Outcome::kSkipped;
    bool wanted =
        decoder_.names->look_up(decoder_.segment, decoder_.generation, *decoder_.api,
                                domain, record->callback, &text);
    Submits what = decoder_.names->submits(domain, record->callback);
    if (!wanted && what == Submits::kNothing) return Outcome::kSkipped;
    event_->type = EventType::kApiCall;
    event_->api = static_cast<uint16_t>(base + record->callback);
    event_->arg0 = decoder_.thread_ids ? record->thread : 0;
    event_->arg2 = record->correlation;
    event_->py_stack = text;
    bool failed = record->return_value != 0;
    event_->flags = failed ? abi::kFlagFailed : 0;
    Outcome outcome = set_times(record->start, record->end);
    if (decoder_.round != nullptr && outcome == Outcome::kEvent) {
      decoder_.round->saw_call(
          record->correlation, event_->start_ns,
          failed && what != Submits::kCaptureEnd ? Submits::kNothing : what);
    }
    return wanted ? outcome : Outcome::kSkipped;
  }

  Outcome synchronization(const Synchronization* record) {
    if (record == nullptr) return Outcome::kSenseless;
    if (record->type != kStreamWaitEvent) return Outcome::kSkipped;
    event_->type = EventType::kGpuStreamWait;
    event_->arg1 = record->event;
    event_->arg2 = record->correlation;
    event_->native_stack =
        intern_stream(decoder_.segment, decoder_.contexts->device_of(record->context),
                      record->context, record->stream);
    return set_times(record->start, record->end);
  }

 private:
  // What all work of a device has.
  template <typename Record>
  Outcome operation(EventType type, const Record& record) {
    event_->type = type;
    event_->arg2 = record.correlation;
    Outcome outcome = set_times(record.start, record.end);
    if (outcome != Outcome::kEvent) return outcome;
    decoder_.contexts->learn(record.context, record.device);
    event_->native_stack =
        intern_stream(decoder_.segment, record.device, record.context, record.stream);
    return outcome;
  }

  // CUPTI leaves both 0 where the device had no memory for the times.
  Outcome set_times(uint64_t start, uint64_t end) {
    if (start == 0 || end < start) return Outcome::kSenseless;
    uint64_t latest = lifetime_.to + kFutureNs;
    uint64_t first, last;
    if (!clock_.convert(start, lifetime_.from, latest, &first) ||
        !clock_.convert(end, lifetime_.from, latest, &last)) {
      return Outcome::kUnreadable;
    }
    if (last < first || last > latest) return Outcome::kSenseless;
    if (last < decoder_.begun_ns) return Outcome::kSkipped;
    event_->start_ns = first;
    event_->duration_ns = last - first;
    return Outcome::kEvent;
  }

  const Decoder& decoder_;
  const ClockView& clock_;
  const Lifetime& lifetime_;
  abi::Event* event_;
};

}  // namespace

void ContextDevices::learn(uint32_t context, uint32_t device) {
  if (context >= kContexts || device == kDeviceUnknown) return;
  if (devices_[context].load(std::memory_order_relaxed) == device + 1) return;
  devices_[context].store(device + 1, std::memory_order_relaxed);
}

uint32_t ContextDevices::device_of(uint32_t context) const {
  uint32_t known =
      context < kContexts ? devices_[context].load(std::memory_order_relaxed) : 0;
  return (known != 0 ? known : only_.load(std::memory_order_relaxed)) - 1;
}

Outcome decode(const Decoder& decoder, const ClockView& clock, const Lifetime& lifetime,
               const Activity* record, size_t size, abi::Event* event) {
  *event = {};
  if (size < sizeof(Activity)) return Outcome::kSenseless;
  Decoding decoding(decoder, clock, lifetime, event);
  switch (record->kind) {
    case Kind::kConcurrentKernel:
      return decoding.kernel(as<Kernel>(record, size));
    case Kind::kMemcpy:
      return decoding.copy(as<Memcpy>(record, size));
    case Kind::kMemcpyPeer:
      return decoding.copy(as<MemcpyPeer>(record, size));
    case Kind::kMemset:
      return decoding.memset(as<Memset>(record, size));
    case Kind::kGraphTrace:
      return decoding.graph(as<GraphTrace>(record, size));
    case Kind::kRuntime:
      return decoding.call(Domain::kRuntime, as<ApiCall>(record, size));
    case Kind::kDriver:
      return decoding.call(Domain::kDriver, as<ApiCall>(record, size));
    case Kind::kSynchronization:
      return decoding.synchronization(as<Synchronization>(record, size));
  }
  return Outcome::kSkipped;
}

}  // namespace lull::cupti
