#include "daemon/import/call_events.h"

namespace lull::imports {
namespace {

using abi::EventType;

constexpr uint32_t kHostToDevice = 1;    // CUpti_ActivityMemcpyKind, cudaMemcpyKind
constexpr uint32_t kDeviceToHost = 2;    // the same
constexpr uint32_t kDeviceToDevice = 3;  // cudaMemcpyKind
constexpr uint32_t kPageable = 1;        // CUpti_ActivityMemoryKind
constexpr uint32_t kPinned = 2;

// Such a copy is taken into a buffer of the driver's, and the call returns.
constexpr uint64_t kStaged = 64 << 10;

bool IsHip(std::string_view name) { return name.substr(0, 3) == "hip"; }

HookedCall HookOfCopy(const Record& call, bool blocking, std::string_view name,
                      const Copied& copied) {
  const uint32_t kind = copied.shape & 0xff;
  const uint32_t source = copied.shape >> 8 & 0xff;
  const uint32_t destination = copied.shape >> 16 & 0xff;
  const uint32_t host = kind == kHostToDevice ? source : destination;
  bool blocks = false;
  if (kind == kDeviceToHost) {
    blocks = blocking || destination == kPageable;
  } else if (kind == kHostToDevice) {
    const bool waited = copied.bytes > kStaged && call.end_ns > copied.start_ns;
    blocks = host == kPageable ? waited : blocking && (IsHip(name) || host == kPinned);
  }
  HookedCall hook;
  hook.type = blocks ? EventType::kSync : EventType::kCopyAsync;
  hook.arg1 = copied.bytes;
  hook.arg2 = kind == kHostToDevice || kind == kDeviceToHost ? kind : kDeviceToDevice;
  if (kind == kHostToDevice || kind == kDeviceToHost) {
    if (host == kPageable) hook.flags = abi::kFlagPageable;
    if (host == kPinned) hook.flags = abi::kFlagPinned;
  }
  return hook;
}

}  // namespace

HookedCall HookOf(const Record& call, const CallFacts& facts, std::string_view name,
                  const Trace& trace) {
  HookedCall hook;
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
    hook.arg1 = copied != trace.copied.end() ? copied->second.bytes : 0;
    hook.arg2 = kDeviceToDevice;
    return hook;
  }
  // Also a call of a name that we do not know, as it did submit something.
  hook.type = EventType::kLaunch;
  hook.arg1 = ran->second;
  return hook;
}

}  // namespace lull::imports
