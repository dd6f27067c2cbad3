// What XLA asks NVML for before it uses a device. It goes without the handle of one.
#include <cstdio>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;

}  // namespace

SIM_EXPORT int nvmlInit_v2() { return kSuccess; }
SIM_EXPORT int nvmlShutdown() { return kSuccess; }

SIM_EXPORT const char* nvmlErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kInvalidArgument:
      return "Invalid Argument";
    default:
      return "Not Supported";
  }
}

// Of the first driver for CUDA 13.0, which is what the simulated one calls itself.
SIM_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  if (text == nullptr) return kInvalidArgument;
  snprintf(text, size, "580.65.06");
  return kSuccess;
}

SIM_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char*, void**) {
  return kNotSupported;
}
