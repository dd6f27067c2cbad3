// Names for the numbers of GPU truth: as keys for programs, as words for people.
//
// The numbers are those of preload/abi/segment.h and event.h, which the CLI does not
// see; tests/cli holds the two together. A number that is not known (the collector is
// newer) reads "unknown".
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull {

enum class GpuMode : uint32_t { kHost = 0, kWindow = 1, kContinuous = 2 };
enum class TracingState : uint32_t { kOff = 0, kWarmUp = 1, kActive = 2, kYielded = 3 };
enum class TracingReason : uint32_t {
  kSchedule = 0,
  kOtherUser = 1,
  kBudget = 2,
  kForeignClock = 3,
  kError = 4,
  kProcessEnd = 5,
};
enum class CuptiState : uint32_t {
  kUnused = 0,
  kNoLibrary = 1,
  kTooOld = 2,
  kFailed = 3,
  kReady = 4,
  kTracing = 5,
  kYielded = 6,
};

const char* GpuModeKey(uint32_t mode);               // "window"
const char* TracingStateKey(uint32_t state);         // "warm_up"
const char* TracingReasonKey(uint32_t reason);       // "other_user"
const char* CuptiStateKey(uint32_t state);           // "no_library"
const char* CauseKey(v1::GapCause cause);            // "data"
const char* CauseName(v1::GapCause cause);           // "data wait"
std::string VerdictText(absl::string_view verdict);  // "data-bound"; "" of ""

// "12.4" of cuptiGetVersion()'s number; "" of 0.
std::string CudaVersionOfCupti(uint32_t version);

}  // namespace lull
