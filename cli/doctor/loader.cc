#include "cli/doctor/loader.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/base/environment.h"
#include "cli/doctor/command.h"

namespace lull {

bool LoaderFinds(const std::string& library) {
  std::vector<std::string> environment = EnvironmentWithoutShim();
  std::erase_if(environment, [](const std::string& variable) {
    return absl::StartsWith(variable, "LD_PRELOAD=");
  });
  environment.push_back(absl::StrCat("LD_PRELOAD=", library));
  auto maps = RunCommand({"cat", "/proc/self/maps"}, environment, absl::Seconds(10));
  // Files of libraries have longer names than what they are asked for by:
  // libcuda.so.1 is libcuda.so.550.54.
  std::string name = std::filesystem::path(library).filename();
  return maps.ok() &&
         absl::StrContains(maps->output,
                           absl::StrCat("/", name.substr(0, name.find(".so") + 3)));
}

}  // namespace lull
