#include "daemon/aggregate/occupancy.h"

#include <algorithm>
#include <limits>

#include "daemon/aggregate/round_up.h"

namespace lull::aggregate {
namespace {

constexpr uint64_t kRegisterUnit = 256;  // per warp
constexpr uint64_t kSchedulers = 4;
constexpr uint64_t kUnlimited = std::numeric_limits<uint32_t>::max();

uint64_t ByRegisters(const LaunchShape& shape, const DeviceLimits& device,
                     uint64_t warps) {
  if (shape.registers_per_thread == 0 || device.max_registers == 0) return kUnlimited;
  uint64_t per_warp =
      RoundUp(uint64_t{shape.registers_per_thread} * device.warp_size, kRegisterUnit);
  uint64_t resident = device.max_registers / per_warp / kSchedulers * kSchedulers;
  return resident / warps;
}

uint64_t BySharedMemory(const LaunchShape& shape, const DeviceLimits& device) {
  bool recent = device.compute_capability >= 80;
  uint64_t bytes =
      RoundUp(uint64_t{shape.shared_bytes} + (recent ? 1024 : 0), recent ? 128 : 256);
  if (bytes == 0 || device.max_shared_bytes == 0) return kUnlimited;
  return device.max_shared_bytes / bytes;
}

}  // namespace

uint32_t MaxActiveBlocks(const LaunchShape& shape, const DeviceLimits& device) {
  if (shape.threads_per_block == 0 || device.max_threads == 0 ||
      device.warp_size == 0) {
    return 0;
  }
  uint64_t warps =
      RoundUp(shape.threads_per_block, device.warp_size) / device.warp_size;
  uint64_t blocks = device.max_threads / device.warp_size / warps;
  if (device.max_blocks != 0) blocks = std::min<uint64_t>(blocks, device.max_blocks);
  blocks = std::min(blocks, ByRegisters(shape, device, warps));
  blocks = std::min(blocks, BySharedMemory(shape, device));
  return static_cast<uint32_t>(blocks);
}

double BlocksPerMultiprocessor(const LaunchShape& shape, const DeviceLimits& device) {
  if (device.multiprocessors == 0) return 0;
  return static_cast<double>(shape.blocks) / device.multiprocessors;
}

double OccupancyPercent(const LaunchShape& shape, const DeviceLimits& device) {
  uint32_t most = MaxActiveBlocks(shape, device);
  if (most == 0) return 0;
  double resident = std::min<double>(most, BlocksPerMultiprocessor(shape, device));
  return std::min(100.0, 100.0 * resident * shape.threads_per_block /
                             static_cast<double>(device.max_threads));
}

}  // namespace lull::aggregate
