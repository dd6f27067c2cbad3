#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/base/environment.h"
#include "cli/doctor/check.h"
#include "cli/doctor/command.h"
#include "cli/doctor/cupti.h"
#include "cli/doctor/loader.h"
#include "cli/render/gpu_words.h"
#include "daemon/relay/control/gpu_plan.h"

namespace lull {
namespace {

constexpr absl::Duration kDriverPatience = absl::Seconds(20);

std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

// On the bus, whether or not it has a driver or is visible in this container.
bool NvidiaGpuOnBus() {
  std::error_code error;
  for (const auto& device :
       std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    // Class 0x03: display, which accelerators without a screen are, too.
    if (FirstLine(device.path() / "vendor") == "0x10de" &&
        absl::StartsWith(FirstLine(device.path() / "class"), "0x03")) {
      return true;
    }
  }
  return false;
}

Check CudaDriver(bool on_bus) {
  if (LoaderFinds("libcuda.so.1")) {
    return {"CUDA driver", Check::Status::kOk, "libcuda.so.1 found"};
  }
  if (!on_bus) {
    return {"CUDA driver", Check::Status::kOk,
            "none, and no NVIDIA GPU that needs one"};
  }
  return {"CUDA driver", Check::Status::kWarning,
          "libcuda.so.1 is missing, although this machine has an NVIDIA GPU",
          "install the NVIDIA driver, or start the container with --gpus"};
}

Check Gpus(bool on_bus) {
  auto ran = RunCommand({"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"},
                        EnvironmentWithoutShim(), kDriverPatience);
  if (ran.ok() && ran->exit_status == 0) {
    std::string names(absl::StripAsciiWhitespace(ran->output));
    return {"GPU", Check::Status::kOk, absl::StrReplaceAll(names, {{"\n", ", "}})};
  }
  if (!on_bus) {
    return {"GPU", Check::Status::kOk,
            "none here; jobs without one are reported all the same"};
  }
  return {"GPU", Check::Status::kWarning,
          "there is one, but nvidia-smi does not see it",
          "check the driver and the container's devices"};
}

Check CuptiOf(const CuptiCopy& copy) {
  std::string version = CudaVersionOfCupti(copy.version);
  Check check{"CUPTI", Check::Status::kOk,
              absl::StrCat(copy.path, version.empty() ? "" : ": CUDA ", version)};
  if (copy.version == 0 && copy.error.empty()) {
    absl::StrAppend(&check.detail, ", not tried without a CUDA driver and a Python");
  } else if (copy.version == 0) {
    check.status = Check::Status::kWarning;
    absl::StrAppend(&check.detail, " cannot be loaded: ", copy.error);
    check.advice = "install it again; without CUPTI there is no GPU truth";
  } else if (copy.version < kOldestCupti) {
    check.status = Check::Status::kWarning;
    check.advice = "too old for GPU truth; use CUDA 11.8 or newer";
  }
  return check;
}

void AddCupti(bool on_bus, std::vector<Check>& checks) {
  std::vector<CuptiCopy> copies = FindCupti();
  for (const CuptiCopy& copy : copies) checks.push_back(CuptiOf(copy));
  if (!copies.empty()) return;
  if (on_bus) {
    checks.push_back({"CUPTI", Check::Status::kWarning, "not found",
                      "pip install nvidia-cuda-cupti-cu12 where the job's PyTorch is, "
                      "or install the CUDA toolkit; without it there is no GPU truth"});
  } else {
    checks.push_back({"CUPTI", Check::Status::kOk, "none here, and no GPU to trace"});
  }
}

// What keeps people from hardware counters does not keep lull from its records.
Check Permission() {
  std::ifstream params("/proc/driver/nvidia/params");
  for (std::string line; std::getline(params, line);) {
    std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (parts.first != "RmProfilingAdminOnly") continue;
    return {"GPU counters", Check::Status::kOk,
            parts.second == "1"
                ? "for administrators only (ERR_NVGPUCTRPERM); lull needs none"
                : "open to all users; lull needs none"};
  }
  return {"GPU counters", Check::Status::kOk,
          "no driver that guards them; lull needs none"};
}

Check Schedule() {
  return {
      "GPU windows", Check::Status::kOk,
      absl::StrCat("--gpu window, --schedule ", relay::ScheduleText(relay::GpuPlan()))};
}

}  // namespace

std::vector<Check> CheckGpu() {
  bool on_bus = NvidiaGpuOnBus();
  std::vector<Check> checks = {CudaDriver(on_bus), Gpus(on_bus)};
  AddCupti(on_bus, checks);
  checks.push_back(Permission());
  checks.push_back(Schedule());
  return checks;
}

}  // namespace lull
