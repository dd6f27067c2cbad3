// Control steps as events and series tell them (preload/steps/control_step.h).
#pragma once

#include <cstdint>

#include "daemon/aggregate/event.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// Beside the source of a step. The amount of its cells: how long hooks rested.
inline constexpr uint8_t kVariantControlStep = 0x80;
// Of a control step that was cut off: another event, which is no step, tells the rest.
inline constexpr uint32_t kFlagCutOff = 1 << 3;

inline bool IsRestAlone(const Series& step) {
  return step.type == EventType::kStep && step.variant == kVariantControlStep;
}

}  // namespace lull::aggregate
