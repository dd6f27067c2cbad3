#include "daemon/import/call_events.h"

#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"

namespace lull::imports {
namespace {

using abi::CopyKind;
using abi::EventType;

// Such a copy is taken into a buffer of the driver's, and the call returns.
constexpr uint64_t kStaged = 64 << 10;

abi::Event HookOfCopy(const Record& call, bool blocking, std::string_view name,
                      const Copied& copied) {
  const CopyShape shape{static_cast<uint32_t>(copied.shape)};
  const auto kind = static_cast<abi::GpuCopyKind>(shape.kind());
  const bool to_device = kind == abi::GpuCopyKind::kHostToDevice;
  const bool to_host = kind == abi::GpuCopyKind::kDeviceToHost;
  const auto host =
      static_cast<abi::GpuMemoryKind>(to_device ? shape.source() : shape.destination());
  const bool pageable = host == abi::GpuMemoryKind::kPageable;
  const bool pinned = host == abi::GpuMemoryKind::kPinned;
  bool blocks = false;
  if (to_host) {
    blocks = blocking || pageable;
  } else if (to_device) {
    const bool waited = copied.bytes > kStaged && call.end_ns > copied.start_ns;
    blocks = pageable ? waited : blocking && (name.starts_with("hip") || pinned);
  }
  abi::Event hook = {};
  hook.type = blocks ? EventType::kSync : EventType::kCopyAsync;
  CopyCallView{hook}
      .set_bytes(copied.bytes)
      .set_kind(to_device ? CopyKind::kHostToDevice
                : to_host ? CopyKind::kDeviceToHost
                          : CopyKind::kDeviceToDevice);
  if (to_device || to_host) {
    if (pageable) hook.flags = abi::kFlagPageable;
    if (pinned) hook.flags = abi::kFlagPinned;
  }
  return hook;
}

}  // namespace

abi::Event HookOf(const Record& call, const CallFacts& facts, std::string_view name,
                  const Trace& trace) {
  abi::Event hook = {};
  const auto ran = trace.ran.find(call.correlation);
  const bool submitted = call.correlation != 0 && ran != trace.ran.end();
  switch (facts.kind) {
    case CallKind::kSync:
      hook.type = EventType::kSync;
      return hook;
    case CallKind::kAllocate:
    case CallKind::kFree:
      hook.type = EventType::kDeviceMemory;
      if (facts.kind == CallKind::kFree) hook.flags |= abi::kFlagFree;
      if (facts.pinned) hook.flags |= abi::kFlagPinned;
      return hook;
    default:
      break;
  }
  // A launch into a stream that is captured submits nothing.
  if (!submitted) return hook;
  const auto copied = trace.copied.find(call.correlation);
  if (facts.kind == CallKind::kCopy && copied != trace.copied.end() &&
      copied->second.kind == Kind::kCopy) {
    return HookOfCopy(call, facts.blocking, name, copied->second);
  }
  if (facts.kind == CallKind::kCopy || facts.kind == CallKind::kMemset) {
    hook.type = EventType::kCopyAsync;
    CopyCallView{hook}
        .set_bytes(copied != trace.copied.end() ? copied->second.bytes : 0)
        .set_kind(CopyKind::kDeviceToDevice);
    return hook;
  }
  // Also a call of a name that we do not know, as it did submit something.
  hook.type = EventType::kLaunch;
  LaunchView{hook}.set_function(ran->second);
  return hook;
}

}  // namespace lull::imports
