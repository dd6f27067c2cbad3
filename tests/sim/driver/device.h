// The simulated device's data sheet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lull::sim {

inline constexpr int kDriverVersion = 13000;
inline constexpr char kDeviceName[] = "Lull Simulated Device";
inline constexpr int kMultiprocessors = 132;
inline constexpr int kThreadsPerMultiprocessor = 2048;
inline constexpr int kBlocksPerMultiprocessor = 32;
inline constexpr int kSharedPerMultiprocessor = 228 << 10;
inline constexpr int kSharedPerBlock = 48 << 10;
inline constexpr int kSharedPerBlockOptin = 227 << 10;
inline constexpr int kRegisters = 64 << 10;
inline constexpr int kComputeMajor = 9;
inline constexpr int kComputeMinor = 0;
inline constexpr int kWarp = 32;
inline constexpr int kThreadsPerBlock = 1024;
inline constexpr int kL2Bytes = 50 << 20;

// CUdevice_attribute. Properties that the device lacks are 0.
int device_attribute(int attribute, int device);

// Resident blocks of `threads` threads and `shared` bytes on one multiprocessor.
int blocks_per_multiprocessor(int threads, size_t shared);

}  // namespace lull::sim
