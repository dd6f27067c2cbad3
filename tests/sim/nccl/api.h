// The types of NCCL's API, from its public documentation.
#pragma once

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace lull::sim::nccl {

struct UniqueId {
  char text[128];
};

inline constexpr int kVersion = 22703;

}  // namespace lull::sim::nccl
