#include "cli/client/install.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "cli/base/environment.h"

namespace lull {
namespace {

absl::StatusOr<std::string> Find(const char* variable, absl::string_view what,
                                 const std::vector<std::string>& places, int mode) {
  std::vector<std::string> tried;
  const std::string chosen = Variable(variable);
  if (!chosen.empty()) {
    if (access(chosen.c_str(), mode) == 0)
      return std::filesystem::absolute(chosen).string();
    return absl::NotFoundError(
        absl::StrCat("$", variable, " names ", chosen,
                     ", which cannot be used; correct or unset it"));
  }
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::NotFoundError("cannot read /proc/self/exe; lull needs /proc mounted");
  }
  for (const std::string& place : places) {
    std::string path = (self.parent_path() / place).lexically_normal().string();
    if (access(path.c_str(), mode) == 0) return path;
    tried.push_back(path);
  }
  return absl::NotFoundError(
      absl::StrCat(what, " is missing: looked for ", absl::StrJoin(tried, ", "),
                   "; install lull as a whole folder, or set $", variable));
}

}  // namespace

absl::StatusOr<std::string> FindPreloadLibrary() {
  auto path = Find("LULL_PRELOAD_LIBRARY", "liblull.so",
                   {"../lib/lull/liblull.so", "../preload/liblull.so"}, R_OK);
  if (path.ok() && path->find_first_of(" :\t\n") != std::string::npos) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the dynamic loader cannot preload ", *path,
        ", because its path holds a space or a colon; install lull elsewhere"));
  }
  return path;
}

absl::StatusOr<std::string> FindCollectorProgram() {
  return Find("LULL_COLLECTOR_PROGRAM", "lulld", {"lulld", "../daemon/collector/lulld"},
              X_OK);
}

}  // namespace lull
