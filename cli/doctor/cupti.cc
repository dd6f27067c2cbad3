#include "cli/doctor/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/client/environment.h"
#include "cli/doctor/command.h"
#include "cli/doctor/interpreters.h"

namespace lull {
namespace {

namespace fs = std::filesystem;

// Below a folder of Python packages: wheels of CUDA 12, of CUDA 13, and PyTorch builds
// that bring their own.
constexpr const char* kInPackages[] = {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib",
                                       "torch/lib"};
constexpr const char* kInToolkit[] = {"extras/CUPTI/lib64", "lib64", "lib"};

// "libcupti.so.12", "libcupti-1a2b3c.so.12.4.127"; not what programs are linked with.
bool IsCupti(const std::string& name) {
  return absl::StartsWith(name, "libcupti") && absl::StrContains(name, ".so.");
}

void AddPackageFolders(std::vector<std::string>* folders) {
  for (const std::string& program : FindPrograms(InterpreterNames())) {
    auto ran = RunCommand({program, "-c", "import sys; print('\\n'.join(sys.path))"},
                          EnvironmentWithoutShim(), absl::Seconds(20));
    if (!ran.ok() || ran->exit_status != 0) continue;
    for (absl::string_view path :
         absl::StrSplit(ran->output, '\n', absl::SkipEmpty())) {
      for (const char* place : kInPackages) {
        folders->push_back(absl::StrCat(path, "/", place));
      }
    }
  }
}

void AddToolkitFolders(std::vector<std::string>* folders) {
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = getenv(variable);
    if (home == nullptr || home[0] == '\0') continue;
    for (const char* place : kInToolkit)
      folders->push_back(absl::StrCat(home, "/", place));
  }
  for (const char* place : kInToolkit) {
    folders->push_back(absl::StrCat("/usr/local/cuda/", place));
  }
}

void AddSearchPath(std::vector<std::string>* folders) {
  const char* path = getenv("LD_LIBRARY_PATH");
  for (absl::string_view folder :
       absl::StrSplit(path != nullptr ? path : "", ':', absl::SkipEmpty())) {
    folders->emplace_back(folder);
  }
#if defined(__aarch64__)
  folders->push_back("/usr/lib/aarch64-linux-gnu");
#else
  folders->push_back("/usr/lib/x86_64-linux-gnu");
#endif
}

// The copy stays loaded: NVIDIA's libraries are not made to be unloaded, what their
// constructors allocate is lost then.
CuptiCopy Look(const std::string& path, bool ask) {
  CuptiCopy copy;
  copy.path = path;
  if (!ask) return copy;
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* error = dlerror();
    copy.error = error != nullptr ? error : "unknown error";
    return copy;
  }
  using GetVersion = int (*)(uint32_t*);
  auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "cuptiGetVersion"));
  if (get_version == nullptr || get_version(&copy.version) != 0) {
    copy.version = 0;
    copy.error = "it does not tell its version";
  }
  return copy;
}

}  // namespace

std::vector<CuptiCopy> FindCuptiIn(const std::vector<std::string>& folders, bool ask) {
  std::vector<CuptiCopy> copies;
  std::set<std::string> seen;
  for (const std::string& folder : folders) {
    std::error_code error;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (IsCupti(entry.path().filename())) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      std::string real = fs::canonical(file, error).string();
      if (!error && seen.insert(real).second) copies.push_back(Look(real, ask));
    }
  }
  return copies;
}

std::vector<CuptiCopy> FindCupti() {
  std::vector<std::string> folders;
  AddPackageFolders(&folders);
  AddSearchPath(&folders);
  AddToolkitFolders(&folders);
  return FindCuptiIn(folders, dlopen("libcuda.so.1", RTLD_LAZY) != nullptr);
}

}  // namespace lull
