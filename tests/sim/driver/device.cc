#include "tests/sim/driver/device.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include "tests/sim/driver/api.h"

namespace lull::sim {

int device_attribute(int attribute, int device) {
  switch (attribute) {
    case 1:  // max threads per block, and its dimensions
    case 2:
    case 3:
      return kThreadsPerBlock;
    case 4:
      return 64;
    case 5:  // grid
      return INT_MAX;
    case 6:
    case 7:
      return 65535;
    case 8:
      return kSharedPerBlock;
    case 9:  // constant memory
      return 64 << 10;
    case 10:
      return kWarp;
    case 11:  // pitch
      return INT_MAX;
    case 12:  // registers per block, per multiprocessor
    case 82:
      return kRegisters;
    case 13:  // kHz: core, memory
      return 1'980'000;
    case 36:
      return 2'619'000;
    case 14:  // alignments
    case 30:
      return 512;
    case 51:
      return 32;
    case 16:
      return kMultiprocessors;
    case 34:  // PCI device
      return device;
    case 33:  // PCI bus
      return 1 + device;
    case 37:  // memory bus width
      return 5120;
    case 38:
      return kL2Bytes;
    case 39:
      return kThreadsPerMultiprocessor;
    case 40:  // copy engines
      return 2;
    case 75:
      return kComputeMajor;
    case 76:
      return kComputeMinor;
    case 81:
      return kSharedPerMultiprocessor;
    case 97:
      return kSharedPerBlockOptin;
    case 106:
      return kBlocksPerMultiprocessor;
    case 111:  // reserved shared memory per block
      return 1024;
    case 15:  // overlap
    case 19:  // maps host memory
    case 31:  // concurrent kernels
    case 41:  // unified addressing
    case 78:  // stream priorities
    case 79:  // global and local L1
    case 80:
    case 83:  // managed memory
    case 89:
    case 90:   // compute preemption
    case 95:   // cooperative launch
    case 99:   // host register
    case 102:  // virtual memory management
    case 103:
    case 115:  // memory pools
      return 1;
    default:
      return 0;
  }
}

int blocks_per_multiprocessor(int threads, size_t shared) {
  if (threads <= 0 || threads > kThreadsPerBlock) return 0;
  int rounded = (threads + kWarp - 1) / kWarp * kWarp;
  int blocks = std::min(kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / rounded);
  if (shared > kSharedPerBlockOptin) return 0;
  return std::min<int>(blocks,
                       static_cast<int>(kSharedPerMultiprocessor / (shared + 1024)));
}

}  // namespace lull::sim

using namespace lull::sim;

SIM_EXPORT int cuInit(unsigned flags) {
  int result = flags != 0 ? static_cast<int>(kInvalidValue) : Engine::start();
  SIM_CALL();
  if (result == kOk && engine->config().devices < 1) result = kNoDevice;
  return call.done(result);
}

SIM_EXPORT int cuDriverGetVersion(int* version) {
  if (version == nullptr) return kInvalidValue;
  *version = kDriverVersion;
  return kOk;
}

SIM_EXPORT int cuDeviceGetCount(int* count) {
  SIM_CALL();
  if (count == nullptr) return call.done(kInvalidValue);
  *count = static_cast<int>(engine->config().devices);
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGet(int* device, int ordinal) {
  SIM_CALL();
  if (device == nullptr) return call.done(kInvalidValue);
  if (!valid(engine, ordinal)) return call.done(kInvalidDevice);
  *device = ordinal;
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  SIM_CALL();
  if (value == nullptr) return call.done(kInvalidValue);
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  *value = device_attribute(attribute, device);
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGetName(char* name, int size, int device) {
  SIM_CALL();
  if (name == nullptr || size <= 0) return call.done(kInvalidValue);
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  snprintf(name, static_cast<size_t>(size), "%s", kDeviceName);
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  SIM_CALL();
  if (bytes == nullptr) return call.done(kInvalidValue);
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  *bytes = static_cast<size_t>(engine->config().memory_bytes);
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGetUuid_v2(void* uuid, int device) {
  SIM_CALL();
  if (uuid == nullptr) return call.done(kInvalidValue);
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  char text[16] = "lull-simulated";
  text[15] = static_cast<char>(device);
  std::memcpy(uuid, text, sizeof text);
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGetUuid(void* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

SIM_EXPORT int cuDeviceGetPCIBusId(char* id, int size, int device) {
  SIM_CALL();
  if (id == nullptr || size <= 0) return call.done(kInvalidValue);
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  snprintf(id, static_cast<size_t>(size), "0000:%02X:%02X.0", 1 + device, device);
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGetByPCIBusId(int* device, const char* id) {
  SIM_CALL();
  unsigned domain, bus, slot;
  if (device == nullptr || id == nullptr ||
      sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    return call.done(kInvalidValue);
  }
  *device = static_cast<int>(slot);
  return call.done(valid(engine, *device) ? kOk : kInvalidDevice);
}

SIM_EXPORT int cuDeviceComputeCapability(int* major, int* minor, int device) {
  SIM_CALL();
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  *major = kComputeMajor;
  *minor = kComputeMinor;
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  SIM_CALL();
  if (!valid(engine, device) || !valid(engine, peer)) return call.done(kInvalidDevice);
  *can = device != peer;
  return call.done(kOk);
}

SIM_EXPORT int cuDeviceGetP2PAttribute(int* value, int attribute, int device,
                                       int peer) {
  SIM_CALL();
  if (!valid(engine, device) || !valid(engine, peer)) return call.done(kInvalidDevice);
  // 2: access supported. 3: native atomics. 4: array access.
  *value = device != peer && attribute == 2;
  return call.done(kOk);
}
