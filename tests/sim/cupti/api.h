// What every exported function of the simulated CUPTI needs.
#pragma once

#include <cstdint>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

// First line of a function: fails where the environment says so.
#define CUPTI_CALL() \
  if (int error = ::lull::sim::cupti::enter(__func__)) return error

// The same for the activity API, first version.
#define CUPTI_V1_CALL() \
  CUPTI_CALL();         \
  if (int error = ::lull::sim::cupti::use_v1()) return error

namespace lull::sim::cupti {

// CUptiResult.
inline constexpr int kSuccess = 0;
inline constexpr int kErrorInvalidParameter = 1;
inline constexpr int kErrorInvalidContext = 3;
inline constexpr int kErrorSizeNotSufficient = 10;
inline constexpr int kErrorMaxLimitReached = 12;
inline constexpr int kErrorNotCompatible = 14;
inline constexpr int kErrorQueueEmpty = 18;
inline constexpr int kErrorInvalidStream = 20;
inline constexpr int kErrorInvalidKind = 21;
inline constexpr int kErrorNotSupported = 27;
inline constexpr int kErrorMultipleSubscribers = 39;
inline constexpr int kErrorUnknown = 999;

// The failure that LULL_SIM_CUPTI_FAIL wants of this call; else 0.
int enter(const char* function);

// Remembers `result` for cuptiGetLastError if it is an error.
int finish(int result);
int take_last_error();

// A process uses the first version of the API or the second, never both.
int use_v1();
int use_v2();

}  // namespace lull::sim::cupti
