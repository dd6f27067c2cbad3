#include "daemon/aggregate/series.h"

#include <algorithm>

#include "daemon/aggregate/control_step.h"
#include "daemon/aggregate/event_views.h"

namespace lull::aggregate {
namespace {

// Numbers of c10::DeviceType.
constexpr uint32_t kC10Cpu = 0;
constexpr uint32_t kC10Cuda = 1;

Allocator AllocatorOf(EventType type, const Event& event) {
  if (type == EventType::kDeviceMemory) {
    return (event.flags & kFlagPinned) != 0 ? Allocator::kPinned : Allocator::kCuda;
  }
  switch (TypeOf(MemoryView{event}.device())) {
    case kC10Cpu:
      return Allocator::kTorchCpu;
    case kC10Cuda:
      return Allocator::kTorchCuda;
    default:
      return Allocator::kTorchOther;
  }
}

// For what is told apart by a number.
uint32_t NumberOf(EventType type, const Event& event) {
  switch (type) {
    case EventType::kGcPause:
      return GcPauseView{event}.generation();
    case EventType::kStep:
      return StepView{event}.source() |
             (StepView{event}.rested_ns() != 0 ? kVariantControlStep : 0u);
    case EventType::kScope:
      return ScopeView{event}.kind();
    default:
      return HostWaitView{event}.part_of();
  }
}

}  // namespace

const char* AllocatorName(Allocator allocator) {
  switch (allocator) {
    case Allocator::kCuda:
      return "cuda";
    case Allocator::kPinned:
      return "pinned";
    case Allocator::kTorchCuda:
      return "torch_cuda";
    case Allocator::kTorchCpu:
      return "torch_cpu";
    case Allocator::kTorchOther:
      break;
  }
  return "torch_other";
}

uint8_t VariantOf(EventType type, const Event& event) {
  if (type == EventType::kGcPause || type == EventType::kStep ||
      type == EventType::kScope || type == EventType::kHostWait) {
    return static_cast<uint8_t>(std::min<uint32_t>(NumberOf(type, event), UINT8_MAX));
  }
  if (!ChangesLive(type)) return 0;
  auto variant = static_cast<uint8_t>(AllocatorOf(type, event));
  if ((event.flags & kFlagFree) != 0) variant |= kVariantFree;
  if ((event.flags & kFlagFailed) != 0) variant |= kVariantFailed;
  if ((event.flags & kFlagBefore) != 0) variant |= kVariantBefore;
  if (type != EventType::kTorchMemory || variant > kAllocatorMask) return variant;
  if ((event.flags & kFlagDrawn) != 0) return variant | kVariantDrawn;
  if ((event.flags & kFlagUndrawn) != 0) return variant | kVariantUndrawn;
  return variant;
}

}  // namespace lull::aggregate
