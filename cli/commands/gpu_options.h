// --gpu and --schedule: how much of the GPU is traced, and when.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/relay/control/gpu_plan.h"

namespace lull {

struct GpuFlags {
  std::string mode = "window";
  std::string schedule;  // "": the default one
};

void AddGpuOptions(CLI::App* verb, GpuFlags* flags);

// INVALID_ARGUMENT names the option and the word that is wrong.
absl::StatusOr<relay::GpuPlan> MakeGpuPlan(const GpuFlags& flags);

}  // namespace lull
