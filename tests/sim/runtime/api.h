// What every file of the simulated runtime needs. One set of sources makes both
// libcudart.so.12 and libcudart.so.13; LULL_SIM_CUDART is the major version.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/sim/runtime/link.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

// First line of an API function: logs it, and names `driver`.
#define SIM_CALL()                                    \
  static ::lull::sim::NameCache sim_name;             \
  ::lull::sim::RuntimeCall call(__func__, &sim_name); \
  if (call.error() != 0) return call.error();         \
  [[maybe_unused]] const ::lull::sim::Driver& driver = call.driver()

// The same for functions that need a current context.
#define SIM_CONTEXT_CALL() \
  SIM_CALL();              \
  if (int error = call.bind_context()) return call.done(error)

// One body, two functions, as in the driver. The body sees kPerThread.
#define SIM_STREAM_API(name, suffix, parameters, ...) \
  SIM_EXPORT int name parameters {                    \
    SIM_CONTEXT_CALL();                               \
    constexpr bool kPerThread = false;                \
    __VA_ARGS__                                       \
  }                                                   \
  SIM_EXPORT int name##suffix parameters {            \
    SIM_CONTEXT_CALL();                               \
    constexpr bool kPerThread = true;                 \
    __VA_ARGS__                                       \
  }

namespace lull::sim {

struct Dim3 {
  unsigned x, y, z;
};

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kInsufficientDriver = 35;
inline constexpr int kInvalidSymbol = 13;
inline constexpr int kInvalidDeviceFunction = 98;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kNotReady = 600;
inline constexpr int kNotSupported = 801;

// What the runtime knows of the calling thread.
struct RuntimeThread {
  int last_error = 0;
  int device = 0;
  bool bound = false;  // a context was made current by, or found by, this runtime
};
RuntimeThread& runtime_thread();

// One call of the runtime API: loads and initialises the driver if nobody has,
// writes the log, and keeps the thread's last error.
class RuntimeCall {
 public:
  RuntimeCall(const char* name, NameCache* cache);
  ~RuntimeCall();
  RuntimeCall(const RuntimeCall&) = delete;
  RuntimeCall& operator=(const RuntimeCall&) = delete;

  int error() const { return error_; }  // of getting here; 0: go on
  const Driver& driver() const { return *driver_; }
  int done(int result);

  // Makes the device's primary context current if the thread has none.
  int bind_context();

 private:
  const Driver* driver_;
  ApiFrame frame_;
  int error_ = 0;
  int result_ = 0;
};

inline uint64_t as_device(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace lull::sim
