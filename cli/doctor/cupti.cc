#include "cli/doctor/cupti.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/base/environment.h"
#include "cli/doctor/command.h"
#include "cli/doctor/interpreters.h"
#include "cli/doctor/loader.h"

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
    const std::string home = Variable(variable);
    if (home.empty()) continue;
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

// Loads the library that its argument names and prints the version, or why not.
constexpr char kAskVersion[] = R"(
import ctypes, os, sys
try:
    library = ctypes.CDLL(sys.argv[1])
    version = ctypes.c_uint32()
    if library.cuptiGetVersion(ctypes.byref(version)) == 0:
        print(version.value)
    else:
        print("it does not tell its version")
except (OSError, AttributeError) as error:
    print(error)
sys.stdout.flush()
os._exit(0)  # NVIDIA's libraries are not made to be unloaded
)";

// In an interpreter, as a job would. The first of `pythons` is asked.
CuptiCopy Look(const std::string& path, const std::vector<std::string>& pythons) {
  CuptiCopy copy;
  copy.path = path;
  if (pythons.empty()) return copy;
  auto ran = RunCommand({pythons.front(), "-c", kAskVersion, path},
                        EnvironmentWithoutShim(), absl::Seconds(20));
  std::string answer(ran.ok() ? absl::StripAsciiWhitespace(ran->output)
                              : ran.status().message());
  if (!absl::SimpleAtoi(answer, &copy.version)) {
    copy.error = answer.empty() ? "the process that loads it crashes" : answer;
  }
  return copy;
}

}  // namespace

std::vector<CuptiCopy> FindCuptiIn(const std::vector<std::string>& folders, bool ask) {
  std::vector<std::string> pythons;
  if (ask) pythons = FindPrograms(InterpreterNames());
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
      if (!error && seen.insert(real).second) copies.push_back(Look(real, pythons));
    }
  }
  return copies;
}

std::vector<CuptiCopy> FindCupti() {
  std::vector<std::string> folders;
  AddPackageFolders(&folders);
  AddSearchPath(&folders);
  AddToolkitFolders(&folders);
  return FindCuptiIn(folders, LoaderFinds("libcuda.so.1"));
}

}  // namespace lull
