// The arguments of what the host did (event_view.h).
#pragma once

#include <cstdint>

#include "daemon/base/event_view.h"
#include "daemon/base/ids.h"

namespace lull {

// Of tensor memory: c10::DeviceType and an index.
enum class TorchDevice : uint32_t { kCpu = 0xff };  // PyTorch numbers the host -1
constexpr TorchDevice TorchCuda(uint32_t index) {
  return static_cast<TorchDevice>(1u << 8 | index);
}
constexpr uint32_t TypeOf(TorchDevice device) {
  return static_cast<uint32_t>(device) >> 8;
}
constexpr uint32_t IndexOf(TorchDevice device) {
  return static_cast<uint32_t>(device) & 0xff;
}

LULL_EVENT_VIEW(ThreadStartView) {
  Event& event;
  LULL_ARGUMENT(ThreadId, thread, arg0)
};

LULL_EVENT_VIEW(LaunchView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, stream, arg0)  // handles of the program's
  LULL_ARGUMENT(uint64_t, function, arg1)
};

// Of kSync and kCopyAsync; a sync that copies nothing has no bytes.
LULL_EVENT_VIEW(CopyCallView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, stream, arg0)
  LULL_ARGUMENT(uint64_t, bytes, arg1)
  LULL_WORD(kind, arg2)  // lull::abi::CopyKind
};

// Of kDeviceMemory and kTorchMemory.
LULL_EVENT_VIEW(MemoryView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, address, arg0)
  LULL_ARGUMENT(uint64_t, bytes, arg1)  // 0 of frees whose size is not told
  LULL_ARGUMENT(TorchDevice, device, arg2)
};

LULL_EVENT_VIEW(ReservedView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, allocated, arg0)
  LULL_ARGUMENT(uint64_t, bytes, arg1)  // in all
  LULL_ARGUMENT(TorchDevice, device, arg2)
};

LULL_EVENT_VIEW(GcPauseView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, collected, arg0)
  LULL_ARGUMENT(uint64_t, uncollectable, arg1)
  LULL_ARGUMENT(uint32_t, generation, arg2)
};

// Its scope is of kind data.
inline constexpr uint32_t kWaitWithinData = 1;

LULL_EVENT_VIEW(HostWaitView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, descriptor, arg0)
  LULL_ARGUMENT(int64_t, result, arg1)
  LULL_ARGUMENT(uint32_t, part_of, arg2)  // kWaitWithinData
};

LULL_EVENT_VIEW(StepView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, number, arg0)
  LULL_WORD(source, arg2)  // lull.v1.StepSource
  uint64_t end_ns() const { return event.start_ns + event.duration_ns; }
  // Of a control step: for how long hooks rested, from its start on. Else 0.
  LULL_ARGUMENT(uint64_t, rested_ns, arg1)
};

LULL_EVENT_VIEW(ScopeView) {
  Event& event;
  // The thread that began it, where another one ended it: such a scope says nothing of
  // either.
  LULL_ARGUMENT(ThreadId, begun_by, arg0)
  bool ended_here() const { return event.arg0 == 0; }
  uint32_t depth() const { return static_cast<uint32_t>(event.arg1); }
  const auto& set_place(uint32_t depth, auto source) const {
    event.arg1 = depth | static_cast<uint64_t>(source) << 32;
    return *this;
  }
  LULL_WORD(kind, arg2)  // lull::abi::ScopeKind
};

LULL_EVENT_VIEW(NonFiniteView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, bits, arg0)  // of a double
};

// ---- What the relay sees of threads from outside ----

LULL_EVENT_VIEW(RunDelayView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, delay_ns, arg0)  // not the span that it was seen in
  LULL_ARGUMENT(uint64_t, migrations, arg1)
  LULL_ARGUMENT(uint32_t, preemptions, arg2)
};

// Of kHostSample, and of what the collector makes of it.
LULL_EVENT_VIEW(SampleView) {
  Event& event;
  LULL_ARGUMENT(uint64_t, weight_ns, arg0)
  LULL_ARGUMENT(uint64_t, doing, arg1)  // state and quality
  uint32_t state() const { return event.arg1 & 0xff; }
  uint32_t quality() const { return event.arg1 >> 8 & 0xff; }
  const auto& set_look(auto state, auto quality) const {
    event.arg1 = static_cast<uint64_t>(state) | static_cast<uint64_t>(quality) << 8;
    return *this;
  }
  LULL_WORD(role, arg2)  // lull.v1.HostSampleRole
};

}  // namespace lull
