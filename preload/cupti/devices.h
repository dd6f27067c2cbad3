// The devices that this process sees, as the driver describes them.
#pragma once

#include "preload/abi/event.h"

namespace lull::cupti {

inline constexpr uint32_t kMostDevices = 64;

// Puts one entry per device into the segment's arena and fills `events` (room for
// kMostDevices) with kGpuDevice. Returns how many. Asks libcuda directly, past our
// hooks; 0 while it is not loaded or not initialised.
uint32_t describe_devices(char* segment, uint64_t now, abi::Event* events);

// While a stream of this thread or another captures a graph, CUDA forbids calls that
// might wait. CUPTI makes such calls; for the life of this object they are allowed on
// the calling thread, and the capture stays valid.
class CaptureTolerated {
 public:
  CaptureTolerated();
  ~CaptureTolerated();
  CaptureTolerated(const CaptureTolerated&) = delete;
  CaptureTolerated& operator=(const CaptureTolerated&) = delete;

 private:
  int mode_;
  bool exchanged_;
};

// No device but one is used: its primary context alone is there. False also where that
// cannot be told.
bool one_device_is_used();

// Brings libcuda in, which the CUDA call that we are in is about to do. False: this
// machine has no driver.
bool load_driver();

// It has what each CUPTI asks it for first, the table of functions for tools. Without
// that none can do anything: a driver that is too old, or one that is none.
bool driver_serves_tools();

// The driver is there and not being torn down.
bool driver_is_alive();

}  // namespace lull::cupti
